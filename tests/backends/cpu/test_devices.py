"""Compiled programs on simulated devices: they meet in native code, and nobody waits for ever."""

from __future__ import annotations

import numpy as np
import pytest
from nested_arrays import leaves

from xlalite.backends.base import CompileOptions, get_backend
from xlalite.hlo.errors import EvaluationError, ExecutionError
from xlalite.hlo.surroundings.custom_calls import CUSTOM_CALLS, custom_call
from xlalite.hlo.surroundings.host_transfers import HostTransfers
from xlalite.hlo.text import parse
from xlalite.hlo.types.dtype import DType

ADD = "add { a = T[] parameter(0)\n b = T[] parameter(1)\n ROOT r = T[] add(a, b) }"


def compiled(body: str, replicas: int, partitions: int = 1, before: str = "", dtype: str = "f32", **options):
    text = (
        f"HloModule m, replica_count={replicas}, num_partitions={partitions}\n{ADD}\n{before}\nENTRY e {{\n{body}\n}}"
    )
    module = parse(text.replace("T[", f"{dtype}["))
    return module, get_backend("cpu").compile(module, CompileOptions(**{"num_threads": 2, **options}))


def agree(module, executable, arguments) -> list:
    """The results, which are those of the evaluator."""
    found = executable.run_on_devices(arguments)
    expected = get_backend("interpreter").compile(module, CompileOptions()).run_on_devices(arguments)
    for one, other in zip(leaves(found), leaves(expected), strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)
    return list(found)


def asked(executable) -> list[str]:
    """The operations that the evaluator is asked for."""
    return [str(d.numbers["opcode"]) for d in executable.decisions() if d.verdict == "evaluated"]


def random_bytes(rng: np.random.Generator, dtype: str, sizes: tuple[int, ...]) -> np.ndarray:
    """Any values of a type; NaNs would have several signs in a sum."""
    numbers = rng.integers(0, 2 if dtype == "pred" else 8, sizes)
    return numbers.astype(DType(dtype).numpy)


MOVES = """x = T[3,{n},5] parameter(0)
 y = T[2,{n}] parameter(1)
 g = (T[3,{m},5], T[2,{m}]) all-gather(x, y), dimensions={{1}}
 a = T[3,{n},5] all-to-all(x), dimensions={{1}}, replica_groups={{{all}}}
 p = (T[3,{n},5], T[2,{n}]) collective-permute(x, y), source_target_pairs={{{pairs}}}
 b = (T[3,{n},5], T[2,{n}]) collective-broadcast(x, y), replica_groups={{{first}}}
 s = T[3,1,5] reduce-scatter(x), dimensions={{1}}, replica_groups={{{all}}}, to_apply=add
 r = (T[3,{n},5], T[2,{n}]) all-reduce(x, y), to_apply=add
 ROOT t = (T[3,{n},5], T[3,1,5]) tuple(a, s)"""


@pytest.mark.parametrize(
    "dtype", ["pred", "s4", "u4", "s8", "u16", "f8e5m2", "bf16", "f16", "f32", "f64", "c64", "c128"]
)
@pytest.mark.parametrize("devices", [1, 2, 7])
def test_all_types_are_moved_and_combined_natively(dtype, devices, rng) -> None:
    everybody = ",".join(map(str, range(devices)))
    pairs = ",".join(f"{{{k},{k + 1}}}" for k in range(devices - 1))
    body = MOVES.format(n=devices, m=devices * devices, all=f"{{{everybody}}}", pairs=pairs, first="{0}")
    for root in ("g", "p", "b", "r", "t"):
        lines = body.replace("ROOT t", "t").splitlines()
        wanted = "\n".join(line.replace(f" {root} =", f" ROOT {root} =") for line in lines)
        module, executable = compiled(wanted, devices, dtype=dtype)
        arrays = [
            [random_bytes(rng, dtype, (3, devices, 5)), random_bytes(rng, dtype, (2, devices))] for _ in range(devices)
        ]
        agree(module, executable, arrays)
        assert not asked(executable)


@pytest.mark.parametrize("devices", [2, 3, 17, 40])
@pytest.mark.parametrize("size", [0, 1, 5, 16_411])
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_sums_of_many_and_large_arrays_are_those_of_the_evaluator(devices, size, threads, rng) -> None:
    body = f"x = f32[{size}] parameter(0)\n ROOT r = f32[{size}] all-reduce(x), channel_id=1, to_apply=add"
    module, executable = compiled(body, devices, num_threads=threads)
    arrays = [[rng.standard_normal(size).astype(np.float32)] for _ in range(devices)]
    agree(module, executable, arrays)
    assert not asked(executable)


def test_large_sums_in_a_loop_are_shared_out(rng) -> None:
    before = """body { s = (s32[], f32[300,101]) parameter(0)
 i = s32[] get-tuple-element(s), index=0
 v = f32[300,101] get-tuple-element(s), index=1
 one = s32[] constant(1)
 n = s32[] add(i, one)
 w = f32[300,101] all-reduce(v), to_apply=add
 h = f32[] constant(0.3)
 hs = f32[300,101] broadcast(h), dimensions={}
 m = f32[300,101] multiply(w, hs)
 ROOT t = (s32[], f32[300,101]) tuple(n, m) }
cond { s = (s32[], f32[300,101]) parameter(0)
 i = s32[] get-tuple-element(s), index=0
 n = s32[] constant(20)
 ROOT c = pred[] compare(i, n), direction=LT }"""
    body = """x = f32[300,101] parameter(0)
 z = s32[] constant(0)
 t = (s32[], f32[300,101]) tuple(z, x)
 w = (s32[], f32[300,101]) while(t), condition=cond, body=body
 ROOT r = f32[300,101] get-tuple-element(w), index=1"""
    module, executable = compiled(body, 3, before=before)
    agree(module, executable, [[rng.standard_normal((300, 101)).astype(np.float32)] for _ in range(3)])


BRANCHES = """one { x = f32[4] parameter(0)
 ROOT a = f32[4] all-reduce(x), channel_id=1, to_apply=add }
two { x = f32[4] parameter(0)
 ROOT b = f32[4] collective-permute(x), channel_id=2, source_target_pairs={{0,1},{1,0}} }
six { x = f32[4] parameter(0)
 y = f32[4,2] broadcast(x), dimensions={0}
 c = f32[4,2] all-reduce(y), channel_id=1, to_apply=add
 s = f32[4,1] slice(c), slice={[0:4],[0:1]}
 ROOT d = f32[4] reshape(s) }
none { ROOT x = f32[4] parameter(0) }"""


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (
            "two",
            r"deadlock: ranks 0 wait in all-reduce \(%a[^)]*\) for 1 \(in %b\S*\); .* \(%b[^)]*\) for 0 \(in %a\S*\)",
        ),
        (
            "six",
            r"deadlock: ranks 0 wait in all-reduce \(%a[^)]*\) for 1 \(in %c\S*\); .* \(%c[^)]*\) for 0 \(in %a\S*\)",
        ),
        ("none", r"deadlock: ranks 0 wait in all-reduce \(%a[^)]*\) for 1 \(finished\)$"),
    ],
)
def test_who_waits_in_vain_is_told_for_whom(other, message) -> None:
    branches = f"true_computation=one, false_computation={other}"
    body = f"x = f32[4] parameter(0)\n p = pred[] parameter(1)\nROOT c = f32[4] conditional(p, x, x), {branches}"
    _, executable = compiled(body, 1, 2, BRANCHES)
    x = np.ones(4, np.float32)
    for _ in range(3):
        with pytest.raises(EvaluationError, match=message):
            executable.run_on_devices([(x, np.True_), (x, np.False_)])
        np.testing.assert_array_equal(executable.run_on_devices([(x, np.True_)] * 2), [x + x] * 2)


@pytest.fixture
def fails_on_rank_2():
    @custom_call("fails_on_rank_2")
    def fail(instruction, operands, call):
        if operands[0] == 2:
            raise ZeroDivisionError("rank 2")
        return np.zeros(4, np.float32)

    yield
    del CUSTOM_CALLS["fails_on_rank_2"]


def test_a_device_that_fails_lets_the_others_go(fails_on_rank_2) -> None:
    body = """r = u32[] replica-id()
 y = f32[4] custom-call(r), custom_call_target="fails_on_rank_2"
 ROOT s = f32[4] all-reduce(y), to_apply=add"""
    _, executable = compiled(body, 4)
    with pytest.raises(ExecutionError, match="rank 2") as caught:
        executable.run_on_devices([()] * 4)
    notes = " ".join(caught.value.__notes__)
    assert "on rank 2 (replica 2, partition 0)" in notes
    assert "ranks 0, 1, 3 wait in all-reduce (%s) for 2 (failed)" in notes


def test_an_interrupted_run_ends(monkeypatch) -> None:
    body = "x = f32[4] parameter(0)\n ROOT s = f32[4] all-reduce(x), to_apply=add"
    _, executable = compiled(body, 2)

    @custom_call("interrupts")
    def interrupt(instruction, operands, call):
        raise KeyboardInterrupt

    try:
        _, executable = compiled(
            """r = u32[] replica-id()
 z = u32[] constant(0)
 p = pred[] compare(r, z), direction=EQ
 x = f32[4] parameter(0)
 y = f32[4] conditional(p, x, x), true_computation=one, false_computation=two
 ROOT s = f32[4] all-reduce(y), to_apply=add""",
            2,
            before='one { x = f32[4] parameter(0)\n ROOT y = f32[4] custom-call(x), custom_call_target="interrupts" }\n'
            "two { ROOT x = f32[4] parameter(0) }",
        )
        with pytest.raises(KeyboardInterrupt):
            executable.run_on_devices([(np.ones(4, np.float32),)] * 2)
    finally:
        del CUSTOM_CALLS["interrupts"]


def test_the_code_alone_is_one_device() -> None:
    body = """x = f32[4] parameter(0)
 p = u32[] replica-id()
 s = f32[4] all-reduce(x), replica_groups={GROUPS}, to_apply=add
 ROOT t = (f32[4], u32[]) tuple(s, p)"""
    x = np.arange(4, dtype=np.float32)
    _, executable = compiled(body.replace("GROUPS", "{0},{1}"), 2)
    found, number = executable(x)
    np.testing.assert_array_equal(found, x)
    assert number == 0
    _, executable = compiled(body.replace("GROUPS", "{0,1}"), 2)
    with pytest.raises(ExecutionError, match=r"all-reduce \(%s\) needs 2 devices, one is there"):
        executable(x)


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ("replica_groups={{0,1},{1,2}}", r"all-reduce \(%r\) has replica 1 in two groups"),
        ("replica_groups={{0,1}}", r"\(%r\) has replica 2 in no group, which rank 2 \(replica 2, partition 0\)"),
    ],
)
def test_wrong_groups_are_refused_when_they_are_used(attributes, message) -> None:
    body = f"x = f32[4] parameter(0)\n ROOT r = f32[4] all-reduce(x), {attributes}, to_apply=add"
    _, executable = compiled(body, 3)
    with pytest.raises(ExecutionError, match=message):
        executable.run_on_devices([(np.ones(4, np.float32),)] * 3)


RAGGED = """x = T[4,3] parameter(0)
 y = T[6,3] parameter(1)
 i = I[2] parameter(2)
 n = I[2] parameter(3)
 o = I[2] parameter(4)
 c = I[2] parameter(5)
 ROOT r = T[6,3] ragged-all-to-all(x, y, i, n, o, c), replica_groups={{1,0}}"""


@pytest.mark.parametrize("index", ["s32", "u8", "s64", "u64"])
@pytest.mark.parametrize("dtype", ["f32", "c128", "s4"])
def test_ragged_rows_go_to_where_they_belong(index, dtype, rng) -> None:
    module, executable = compiled(RAGGED.replace("I[", f"{index}["), 2, dtype=dtype)
    vectors = [([0, 1], [1, 3], [0, 0], [1, 2]), ([0, 2], [2, 1], [1, 3], [3, 1])]
    arguments = [
        (
            *(random_bytes(rng, dtype, (rows, 3)) for rows in (4, 6)),
            *(np.array(v, DType(index).numpy) for v in vectors[k]),
        )
        for k in range(2)
    ]
    agree(module, executable, arguments)
    assert not asked(executable)


@pytest.mark.parametrize(
    ("starts", "sizes", "targets", "message"),
    [
        ([4, 0], [1, 1], [0, 0], r"rows \[4, 5\) of 4 to row 0 of 6"),
        ([0, 0], [3, 1], [4, 0], r"rows \[0, 3\) of 4 to row 4 of 6"),
        ([-2, 0], [1, 1], [0, 0], r"rows \[-2, -1\) of 4 to row 0 of 6"),
        ([0, 0], [-1, 1], [0, 0], r"rows \[0, -1\) of 4 to row 0 of 6"),
        ([2**31 - 1, 0], [2**31 - 1, 1], [0, 0], r"of 4 to row 0 of 6"),
    ],
)
def test_ragged_rows_that_are_not_there_are_refused(starts, sizes, targets, message) -> None:
    module, executable = compiled(RAGGED.replace("I[", "s32["), 2)
    vectors = [np.array(v, np.int32) for v in (starts, sizes, targets, [1, 1])]
    arguments = [(np.ones((4, 3), np.float32), np.zeros((6, 3), np.float32), *vectors)] * 2
    for one in (executable, get_backend("interpreter").compile(module, CompileOptions())):
        with pytest.raises((ExecutionError, EvaluationError), match=message):
            one.run_on_devices(arguments)


@pytest.mark.parametrize("index", ["s32", "u64", "s8"])
@pytest.mark.parametrize("starts", [(0, 0, 0, 0), (1, 2, 2, 1), (100, 7, 120, 90)])
def test_slices_are_put_inside(index, starts, rng) -> None:
    body = """x = f16[2,4] parameter(0)
 y = f16[3,4] parameter(1)
 a = I[] parameter(2)
 b = I[] parameter(3)
 c = I[] parameter(4)
 d = I[] parameter(5)
 f = (I[], I[]) tuple(a, b)
 g = (I[], I[]) tuple(c, d)
 from = ((I[], I[]), (I[], I[])) tuple(f, g)
 to = ((I[], I[]), (I[], I[])) tuple(g, f)
 ROOT r = f16[3,4] collective-permute(x, y, from, to), source_target_pairs={{0,1},{1,2}}, slice_sizes={{1,3},{2,1}}"""
    module, executable = compiled(body.replace("I[", f"{index}["), 3)
    numbers = [np.array(n, DType(index).numpy) for n in starts]
    arguments = [
        (*(rng.standard_normal(dims).astype(np.float16) for dims in ((2, 4), (3, 4))), *numbers) for _ in range(3)
    ]
    agree(module, executable, arguments)
    assert not asked(executable)


def test_a_sum_that_no_kernel_computes_is_evaluated_among_devices() -> None:
    @custom_call("its_sum")
    def add(instruction, operands, call):
        return operands[0] + operands[1]

    reducer = """odd { a = f32[] parameter(0)
 b = f32[] parameter(1)
 ROOT r = f32[] custom-call(a, b), custom_call_target="its_sum" }"""
    try:
        body = """x = f32[4] parameter(0)
 s = f32[4] all-reduce(x), to_apply=odd
 ROOT r = f32[4] all-reduce(s), to_apply=add"""
        _, executable = compiled(body, 3, before=reducer)
        arrays = [(np.full(4, k, np.float32),) for k in range(3)]
        np.testing.assert_array_equal(executable.run_on_devices(arrays), [[9] * 4] * 3)
        assert asked(executable) == ["all-reduce"]
    finally:
        del CUSTOM_CALLS["its_sum"]


def test_devices_have_hosts_and_send_to_each_other() -> None:
    pairs = 'frontend_attributes={_xla_send_recv_source_target_pairs="{{0,1},{1,2}}"}'
    body = f"""t = token[] after-all()
 i = (f32[4], token[]) infeed(t)
 x = f32[4] get-tuple-element(i), index=0
 r = (f32[4], u32[], token[]) recv(t), channel_id=1, {pairs}
 s = (f32[4], u32[], token[]) send(x, t), channel_id=1, {pairs}
 d = (f32[4], token[]) recv-done(r), channel_id=1, control-predecessors={{s}}
 e = token[] send-done(s), channel_id=1
 v = f32[4] get-tuple-element(d), index=0
 a = f32[4] all-reduce(v), to_apply=add
 o = token[] outfeed(a, t), outfeed_shape=f32[4]
 ROOT n = f32[4] negate(v)"""
    _, executable = compiled(body, 3)
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    hosts = [HostTransfers([one]) for one in x]
    np.testing.assert_array_equal(executable.run_on_devices([()] * 3, transfers=hosts), [-0 * x[0], -x[0], -x[1]])
    for host in hosts:
        np.testing.assert_array_equal(host.outfeed, [x[0] + x[1]])
