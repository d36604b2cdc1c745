"""When a cluster is compiled: the scenarios of TensorFlow's test of lazy compilation."""

import numpy as np

import xlalite as tf
from xlalite.runtime.compile_policy import CompilePolicy, Verdict
from xlalite.runtime.options import CompileMode


def request(policy: CompilePolicy, size: int) -> Verdict:
    policy.runs += 1
    verdict = policy.decide((0, (size,)))
    if verdict is Verdict.COMPILE:
        policy.compilations += 1
    return verdict


def test_first_signature_at_once_others_when_they_come_back() -> None:
    policy = CompilePolicy(CompileMode.LAZY, 2)
    assert [request(policy, size) for size in (5, 2, 2, 3)] == [
        Verdict.COMPILE,
        Verdict.NOT_YET,
        Verdict.COMPILE,
        Verdict.NOT_YET,
    ]


def test_cluster_whose_signatures_keep_changing_is_given_up() -> None:
    policy = CompilePolicy(CompileMode.LAZY, 2)
    for size in range(40):
        request(policy, size)
        request(policy, size)
        policy.runs += 47
    assert policy.is_megamorphic
    assert {request(policy, 999) for _ in range(50)} == {Verdict.MEGAMORPHIC}


def test_cluster_that_runs_often_enough_is_compiled_for_every_signature() -> None:
    policy = CompilePolicy(CompileMode.LAZY, 2)
    for size in range(40):
        request(policy, size)
        request(policy, size)
        policy.runs += 998
    assert not policy.is_megamorphic


def test_other_modes_decide_without_counting() -> None:
    strict, off = CompilePolicy(CompileMode.STRICT, 2), CompilePolicy(CompileMode.OFF, 2)
    assert {request(strict, size) for size in range(30)} == {Verdict.COMPILE}
    assert {request(off, 1) for _ in range(30)} == {Verdict.NEVER}


def test_threshold_is_obeyed() -> None:
    policy = CompilePolicy(CompileMode.LAZY, 3)
    assert [request(policy, size) for size in (1, 2, 2, 2)][1:] == [Verdict.NOT_YET, Verdict.NOT_YET, Verdict.COMPILE]


def test_a_cluster_is_compiled_as_often_as_the_session_allows() -> None:
    policy = CompilePolicy(CompileMode.LAZY, 1, max_compilations=2)
    for size in (1, 2):
        assert policy.decide((0, (size,))) is Verdict.COMPILE
        policy.compilations += 1
    assert policy.decide((0, (3,))) is Verdict.OFTEN_ENOUGH
    strict = CompilePolicy(CompileMode.STRICT, 1, max_compilations=1)
    strict.compilations = 1
    assert strict.decide((0, (3,))) is Verdict.COMPILE


def test_changing_sizes_run_op_by_op_once_a_cluster_was_compiled_often_enough() -> None:
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [None])
        y = tf.tanh(x) * 2 + tf.exp(x)
        config = tf.ConfigProto()
        config.graph_options.optimizer_options.global_jit_level = tf.OptimizerOptions.ON_1
        config.xlalite.lazy_compile_threshold = 1
        config.xlalite.max_compilations = 3
        with tf.Session(config=config) as session:
            for size in (1, 2, 3, 4, 5, 1):
                given = np.linspace(0, 1, size, dtype=np.float32)
                np.testing.assert_allclose(session.run(y, {x: given}), np.tanh(given) * 2 + np.exp(given), rtol=1e-6)
            found = [each for each in session.decisions() if each.decided_by == "compilation"]
    assert [each.verdict for each in found] == ["compiled", "compiled again", "compiled again", "runs op by op"]
    assert found[-1].reason == "compiled as often as the session allows for a cluster"
