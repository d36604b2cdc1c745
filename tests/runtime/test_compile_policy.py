"""When a cluster is compiled: the scenarios of TensorFlow's test of lazy compilation."""

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
