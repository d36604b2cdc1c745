"""Programs on many simulated devices: groups in all their meanings, every collective, and devices that wait in vain."""

import numpy as np
import pytest
from nested_arrays import leaves

from xlalite.backends.base import CompileOptions, get_backend
from xlalite.hlo.errors import EvaluationError
from xlalite.hlo.evaluation.spmd import evaluate_spmd
from xlalite.hlo.surroundings.host_transfers import HostTransfers
from xlalite.hlo.text import parse
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.verification.verifier import verify

ADD = "add { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT r = f32[] add(a, b) }"


def run(body: str, arguments, replicas: int = 1, partitions: int = 1, before: str = "", transfers=()) -> list:
    text = (
        f"HloModule m, replica_count={replicas}, num_partitions={partitions}\n{ADD}\n{before}\nENTRY e {{\n{body}\n}}\n"
    )
    module = parse(text)
    verify(module)
    assert str(parse(str(module))) == str(module)
    arguments = [one if isinstance(one, tuple) else (one,) for one in arguments]
    found = evaluate_spmd(module, arguments, transfers=transfers)
    if not transfers:
        executable = get_backend("cpu").compile(module, CompileOptions(num_threads=2))
        compiled = executable.run_on_devices(arguments)
        for one, other in zip(leaves(compiled), leaves(found), strict=True):
            np.testing.assert_array_equal(one, other)
    return list(found)


def numbers(count: int, *sizes: int) -> list[np.ndarray]:
    return list(np.arange(count * int(np.prod(sizes)), dtype=np.float32).reshape(count, *sizes))


X = "x = f32[4] parameter(0)\n"
# (replicas, partitions, attributes, the group of each rank): the meanings of replica_groups.
MEANINGS = [
    (8, 1, "replica_groups={}", [range(8)] * 8),
    (8, 1, "replica_groups={{0,2,4,6},{7,5,3,1}}", [[0, 2, 4, 6], [7, 5, 3, 1]] * 4),
    (4, 2, "replica_groups={}", [[0, 2, 4, 6], [1, 3, 5, 7]] * 4),
    (4, 2, "replica_groups={{0,1},{3,2}}", [[0, 2], [1, 3]] * 2 + [[6, 4], [7, 5]] * 2),
    (4, 2, "channel_id=1, replica_groups={{0,1},{3,2}}", [[0, 1, 2, 3]] * 4 + [[6, 7, 4, 5]] * 4),
    (1, 8, "channel_id=1, replica_groups={{0}}", [range(8)] * 8),
    (
        4,
        2,
        "channel_id=1, replica_groups={{0,3},{1,2},{4,5},{6,7}}, use_global_device_ids=true",
        [[0, 3], [1, 2], [1, 2], [0, 3], [4, 5], [4, 5], [6, 7], [6, 7]],
    ),
    (
        2,
        4,
        "channel_id=1, replica_groups=[2,4]<=[4,2]T(1,0), use_global_device_ids=true",
        [[0, 2, 4, 6], [1, 3, 5, 7]] * 4,
    ),
]


@pytest.mark.parametrize(("replicas", "partitions", "attributes", "groups"), MEANINGS)
def test_groups_of_reductions_and_gathers(replicas, partitions, attributes, groups) -> None:
    x = numbers(8, 4)
    found = run(X + f"ROOT r = f32[4] all-reduce(x), {attributes}, to_apply=add", x, replicas, partitions)
    np.testing.assert_array_equal(found, [sum(x[k] for k in group) for group in groups])
    size = 4 * len(groups[0])
    body = X + f"ROOT r = f32[{size}] all-gather(x), {attributes}, dimensions={{0}}"
    if attributes.startswith("channel_id=1, replica_groups={{0,1},{3,2}}") or "{{0}}" in attributes:
        return  # the shape of the result does not follow from such groups
    found = run(body, x, replicas, partitions)
    np.testing.assert_array_equal(found, [np.concatenate([x[k] for k in group]) for group in groups])


@pytest.mark.parametrize(
    ("replicas", "partitions", "attributes", "groups"),
    [
        (
            8,
            1,
            "replica_groups={{3,1},{0,2},{4,5},{6,7}}",
            [[0, 2], [3, 1], [0, 2], [3, 1]] + [[4, 5]] * 2 + [[6, 7]] * 2,
        ),
        (4, 2, "channel_id=1, replica_groups={{1,0}}", [[k - k % 2 + 1, k - k % 2] for k in range(8)]),
        (2, 4, "channel_id=1, replica_groups={{0,1},{2,3}}", [[k - k % 2, k - k % 2 + 1] for k in range(8)]),
    ],
)
def test_groups_of_exchanges_are_partitions_when_there_is_a_channel(replicas, partitions, attributes, groups) -> None:
    x = numbers(8, 4)
    found = run(X + f"ROOT r = f32[4] all-to-all(x), {attributes}, dimensions={{0}}", x, replicas, partitions)
    for rank, group in enumerate(groups):
        place = group.index(rank)
        np.testing.assert_array_equal(found[rank], np.concatenate([x[k][2 * place : 2 * place + 2] for k in group]))
    found = run(X + f"ROOT r = f32[4] collective-broadcast(x), {attributes}", x, replicas, partitions)
    np.testing.assert_array_equal(found, [x[group[0]] for group in groups])


def test_one_program_means_the_same_however_the_devices_are_called() -> None:
    x = numbers(8, 4)
    groups = "channel_id=1, replica_groups=[1,8]<=[8], use_global_device_ids=true"
    body = X + f"ROOT r = f32[4] all-reduce(x), {groups}, to_apply=add"
    for replicas, partitions in ((1, 8), (4, 2), (2, 4), (8, 1)):
        np.testing.assert_array_equal(run(body, x, replicas, partitions), [sum(x)] * 8)


REDUCERS = {
    "sum": "ROOT r = {t}[] add(a, b)",
    "farthest": "c = {t}[] subtract(a, b)\n d = {t}[] multiply(c, b)\n ROOT r = {t}[] maximum(d, a)",
    "by halves": "p = pred[] compare(a, b), direction=LT\n ROOT r = {t}[] conditional(p, a, b), "
    "true_computation=same, false_computation=same",
}


@pytest.mark.parametrize("reducer", REDUCERS)
@pytest.mark.parametrize("dtype", ["f32", "f64", "bf16", "f16", "f8e4m3fn", "s8", "s4", "u64"])
@pytest.mark.parametrize("sizes", [(), (0, 6), (3, 6), (17, 66)], ids=str)
def test_reducers_of_all_types_mean_the_same_compiled(dtype, reducer, sizes, rng) -> None:
    before = "same { x = {t}[] parameter(0)\n ROOT y = {t}[] copy(x) }\n"
    before += "reducer { a = {t}[] parameter(0)\n b = {t}[] parameter(1)\n " + REDUCERS[reducer] + " }"
    shape = dtype + str(list(sizes)).replace(" ", "")
    body = f"x = {shape} parameter(0)\n s = {shape} all-reduce(x), to_apply=reducer\n"
    if sizes:
        part = f"{dtype}[{sizes[0]},{sizes[1] // 3}]"
        body += f"p = {part} reduce-scatter(x), dimensions={{1}}, to_apply=reducer\n"
        body += f"ROOT t = ({shape}, {part}) tuple(s, p)"
    else:
        body += f"ROOT c = {shape} copy(s)"
    arrays = [rng.integers(0, 5, sizes).astype(DType(dtype).numpy) for _ in range(3)]
    run(body, arrays, 3, before=before.replace("{t}", dtype))


def test_reduce_scatter_is_a_piece_of_all_reduce() -> None:
    x = numbers(4, 4, 6)
    body = """x = f32[4,6] parameter(0)
 ROOT r = f32[4,3] reduce-scatter(x), replica_groups={{2,0},{1,3}}, dimensions={1}, to_apply=add"""
    found = run(body, x, 4)
    np.testing.assert_array_equal(found[2], (x[0] + x[2])[:, :3])
    np.testing.assert_array_equal(found[0], (x[0] + x[2])[:, 3:])
    np.testing.assert_array_equal(found[3], (x[1] + x[3])[:, 3:])


def test_a_matrix_product_over_devices_equals_the_whole_one() -> None:
    rng = np.random.default_rng(3)
    a, b = rng.integers(-5, 5, (6, 8)).astype(np.float32), rng.integers(-5, 5, (8, 4)).astype(np.float32)
    everyone = "replica_groups={{0,1,2,3}}, use_global_device_ids=true, dimensions={1}"
    body = f"""a = f32[6,2] parameter(0)
 b = f32[2,4] parameter(1)
 d = f32[6,4] dot(a, b), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
 s = f32[6,1] reduce-scatter(d), channel_id=1, {everyone}, to_apply=add
 ROOT g = f32[6,4] all-gather(s), channel_id=2, {everyone}"""
    pieces = [(a[:, 2 * k : 2 * k + 2], b[2 * k : 2 * k + 2]) for k in range(4)]
    for replicas, partitions in ((1, 4), (2, 2), (4, 1)):
        for found in run(body, pieces, replicas, partitions):
            np.testing.assert_array_equal(found, a @ b)


def test_all_to_all_of_a_tuple_sends_operand_i_to_device_i() -> None:
    body = """x = f32[2] parameter(0)
 y = f32[2] parameter(1)
 ROOT r = (f32[2], f32[2]) all-to-all(x, y), replica_groups={{1,0}}"""
    x = numbers(4, 2)
    found = run(body, [(x[0], x[1]), (x[2], x[3])], 2)
    np.testing.assert_array_equal(found[1], [x[2], x[0]])
    np.testing.assert_array_equal(found[0], [x[3], x[1]])


def test_ragged_all_to_all_sends_blocks_of_rows() -> None:
    body = """x = f32[4] parameter(0)
 y = f32[6] parameter(1)
 i = s32[2] parameter(2)
 n = s32[2] parameter(3)
 o = s32[2] parameter(4)
 c = s32[2] parameter(5)
 ROOT r = f32[6] ragged-all-to-all(x, y, i, n, o, c), replica_groups={{0,1}}"""
    x, zeros = numbers(2, 4), np.full(6, -1, np.float32)
    vectors = [
        [np.array(v, np.int32) for v in ([0, 1], [1, 3], [0, 0], [1, 2])],
        [np.array(v, np.int32) for v in ([0, 2], [2, 1], [1, 3], [3, 1])],
    ]
    found = run(body, [(x[k], zeros, *vectors[k]) for k in range(2)], 2)
    np.testing.assert_array_equal(found[0], [x[0][0], x[1][0], x[1][1], -1, -1, -1])
    np.testing.assert_array_equal(found[1], [*x[0][1:4], x[1][2], -1, -1])


@pytest.mark.parametrize(("replicas", "partitions", "channel"), [(4, 1, ""), (1, 4, "channel_id=1, ")])
def test_permute_gives_zeros_to_whom_nobody_sends(replicas, partitions, channel) -> None:
    x = numbers(4, 4)
    body = X + f"ROOT r = f32[4] collective-permute(x), {channel}source_target_pairs={{{{0,1}},{{1,2}},{{3,3}}}}"
    np.testing.assert_array_equal(run(body, x, replicas, partitions), [np.zeros(4), x[0], x[1], x[3]])


def test_permute_in_place_moves_a_slice() -> None:
    body = """x = f32[2,4] parameter(0)
 y = f32[3,4] parameter(1)
 zero = s32[] constant(0)
 one = s32[] constant(1)
 from = (s32[], s32[]) tuple(one, zero)
 to = (s32[], s32[]) tuple(zero, one)
 {}"""
    x, y = numbers(2, 2, 4), numbers(2, 3, 4)
    attributes = "source_target_pairs={{0,1}}, slice_sizes={{1,3}}"
    sync = f"ROOT r = f32[3,4] collective-permute(x, y, from, to), {attributes}"
    begun = f"""s = (f32[2,4], f32[3,4], u32[], u32[]) collective-permute-start(x, y, from, to), {attributes}
 ROOT r = f32[3,4] collective-permute-done(s)"""
    for ending in (sync, begun):
        found = run(body.format(ending), list(zip(x, y, strict=True)), 2)
        np.testing.assert_array_equal(found[0], y[0])
        expected = y[1].copy()
        expected[0, 1:] = x[0][1, :3]
        np.testing.assert_array_equal(found[1], expected)


# (operation, shape that -start gives, shape that -done gives, attributes)
STARTED = [
    ("all-reduce", "f32[4]", "f32[4]", "replica_groups={}, to_apply=add"),
    ("all-gather", "(f32[4], f32[8])", "f32[8]", "replica_groups={{0,1}}, dimensions={0}"),
    ("collective-permute", "(f32[4], f32[4])", "f32[4]", "source_target_pairs={{0,1}}"),
    ("reduce-scatter", "((f32[4]), f32[2])", "f32[2]", "replica_groups={{0,1}}, dimensions={0}, to_apply=add"),
    ("collective-broadcast", "((f32[4]), f32[4])", "f32[4]", "replica_groups={{1,0}}"),
    ("all-to-all", "((f32[4]), f32[4])", "f32[4]", "replica_groups={{1,0}}, dimensions={0}"),
]


@pytest.mark.parametrize(("opcode", "begun", "shape", "attributes"), STARTED)
def test_start_and_done_give_what_the_operation_gives(opcode, begun, shape, attributes) -> None:
    x = numbers(2, 4)
    body = f"s = {begun} {opcode}-start(x), {attributes}\nROOT r = {shape} {opcode}-done(s)"
    expected = run(X + f"ROOT r = {shape} {opcode}(x), {attributes}", x, 2)
    np.testing.assert_array_equal(run(X + body, x, 2), expected)


def test_devices_know_their_numbers() -> None:
    body = "p = u32[] partition-id()\nq = u32[] replica-id()\nROOT t = (u32[], u32[]) tuple(q, p)"
    assert run(body, [()] * 6, 2, 3) == [(replica, partition) for replica in range(2) for partition in range(3)]


LOOP = """body { s = (s32[], f32[4]) parameter(0)
 i = s32[] get-tuple-element(s), index=0
 v = f32[4] get-tuple-element(s), index=1
 one = s32[] constant(1)
 n = s32[] add(i, one)
 w = f32[4] collective-permute(v), source_target_pairs={{0,1},{1,2},{2,0}}
 ROOT t = (s32[], f32[4]) tuple(n, w) }
cond { s = (s32[], f32[4]) parameter(0)
 i = s32[] get-tuple-element(s), index=0
 n = s32[] constant(2)
 ROOT c = pred[] compare(i, n), direction=LT }"""


def test_collectives_in_loops_meet_once_an_iteration() -> None:
    body = (
        X
        + """z = s32[] constant(0)
 t = (s32[], f32[4]) tuple(z, x)
 w = (s32[], f32[4]) while(t), condition=cond, body=body
 ROOT r = f32[4] get-tuple-element(w), index=1"""
    )
    x = numbers(3, 4)
    np.testing.assert_array_equal(run(body, x, 3, before=LOOP), [x[1], x[2], x[0]])


PAIRS = 'frontend_attributes={_xla_send_recv_source_target_pairs="{{0,1},{1,2}}"}'
RING = f"""x = f32[4] parameter(0)
 t = token[] after-all()
 r = (f32[4], u32[], token[]) recv(t), channel_id=1, {PAIRS}
 s = (f32[4], u32[], token[]) send(x, t), channel_id=1, {PAIRS}
 d = (f32[4], token[]) recv-done(r), channel_id=1
 e = token[] send-done(s), channel_id=1
 ROOT v = f32[4] get-tuple-element(d), index=0"""


@pytest.mark.parametrize(("replicas", "partitions"), [(3, 1), (1, 3)])
def test_send_and_recv_connect_pairs(replicas, partitions) -> None:
    x = numbers(3, 4)
    np.testing.assert_array_equal(run(RING, x, replicas, partitions), [np.zeros(4), x[0], x[1]])


def test_each_device_has_its_own_host() -> None:
    body = """t = token[] after-all()
 i = (f32[4], token[]) infeed(t)
 v = f32[4] get-tuple-element(i), index=0
 s = f32[4] all-reduce(v), replica_groups={}, to_apply=add
 o = token[] outfeed(s, t), outfeed_shape=f32[4]
 ROOT r = f32[4] negate(v)"""
    x = numbers(2, 4)
    hosts = [HostTransfers([one]) for one in x]
    np.testing.assert_array_equal(run(body, [(), ()], 2, transfers=hosts), [-x[0], -x[1]])
    for host in hosts:
        np.testing.assert_array_equal(host.outfeed, [x[0] + x[1]])


BRANCHES = """one { x = f32[4] parameter(0)
 ROOT a = f32[4] all-reduce(x), channel_id=1, replica_groups={{0,1}}, use_global_device_ids=true, to_apply=add }
two { x = f32[4] parameter(0)
 ROOT b = f32[4] collective-permute(x), channel_id=2, source_target_pairs={{0,1},{1,0}} }
none { ROOT x = f32[4] parameter(0) }"""


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ("two", r"deadlock: ranks 0 wait in all-reduce \(%a\) for 1 \(in %b\); .* \(%b\) for 0 \(in %a\)"),
        ("none", r"deadlock: ranks 0 wait in all-reduce \(%a\) for 1 \(finished\)$"),
    ],
)
def test_devices_in_different_branches_wait_in_vain(other, message) -> None:
    branches = f"true_computation=one, false_computation={other}"
    body = X + f"p = pred[] parameter(1)\nROOT c = f32[4] conditional(p, x, x), {branches}"
    x = numbers(2, 4)
    with pytest.raises(EvaluationError, match=message):
        run(body, [(x[0], np.True_), (x[1], np.False_)], 1, 2, BRANCHES)
    found = run(body, [(x[0], np.True_), (x[1], np.True_)], 1, 2, BRANCHES)
    np.testing.assert_array_equal(found, [x[0] + x[1]] * 2)


def test_receiving_what_nobody_sends_is_a_deadlock() -> None:
    body = RING.replace('"{{0,1},{1,2}}"', '"{{0,1}}"', 1)
    with pytest.raises(EvaluationError, match="nobody received what was sent to rank 2 on channel 1"):
        run(body, numbers(3, 4), 3)
    body = RING[: RING.index(" s = ")] + RING[RING.index(" d = ") :].replace(
        " e = token[] send-done(s), channel_id=1\n", ""
    )
    with pytest.raises(
        EvaluationError, match=r"deadlock: ranks 1, 2 wait in recv-done \(%d\) for a value on channel 1"
    ):
        run(body, numbers(3, 4), 3)


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ("replica_groups={{0,1},{1,2}}", r"all-reduce \(%r\) has replica 1 in two groups"),
        ("replica_groups={{0,1}}", r"\(%r\) has replica 2 in no group, which rank 2 \(replica 2, partition 0\)"),
        ("replica_groups={{0,1},{2,3}}", r"\(%r\) needs replica 3, there are 3"),
        ("replica_groups={{0,1,2}}, use_global_device_ids=true", "expected a channel_id too"),
    ],
)
def test_groups_must_partition_the_devices(attributes, message) -> None:
    with pytest.raises(EvaluationError, match=message):
        run(X + f"ROOT r = f32[4] all-reduce(x), {attributes}, to_apply=add", numbers(3, 4), 3)


def test_a_device_in_no_group_is_given_zeros_by_a_broadcast() -> None:
    x = numbers(3, 4)
    found = run(X + "ROOT r = f32[4] collective-broadcast(x), replica_groups={{2,0}}", x, 3)
    np.testing.assert_array_equal(found, [x[2], np.zeros(4), x[2]])


@pytest.mark.parametrize(
    ("pairs", "message"), [("{{0,1},{0,2}}", "source of two pairs"), ("{{0,1},{2,1}}", "target of two pairs")]
)
def test_pairs_of_a_permutation_are_one_to_one(pairs, message) -> None:
    with pytest.raises(EvaluationError, match=message):
        run(X + f"ROOT r = f32[4] collective-permute(x), source_target_pairs={pairs}", numbers(3, 4), 3)


def test_arguments_of_every_device_are_wanted() -> None:
    with pytest.raises(EvaluationError, match=r"found arguments of 2 .* expected 3 \(3 replicas x 1 partitions\)"):
        run(X + "ROOT r = f32[4] negate(x)", numbers(2, 4), 3)
    with pytest.raises(EvaluationError, match="parameter 0") as caught:
        run(X + "ROOT r = f32[4] negate(x)", [np.zeros(4, np.float32), np.zeros(5, np.float32)], 2)
    assert "on rank 1 (replica 1, partition 0)" in caught.value.__notes__
