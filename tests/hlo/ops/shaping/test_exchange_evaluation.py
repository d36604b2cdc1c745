"""Dynamic sizes, asynchronous operations, exchange with the host, custom calls, collectives."""

from collections.abc import Callable

import numpy as np
import pytest

from xlalite.backends.base import CompileOptions, get_backend
from xlalite.hlo.errors import EvaluationError, ParseError, XlaliteError
from xlalite.hlo.ir.op import Trait
from xlalite.hlo.ops import OPS
from xlalite.hlo.surroundings.custom_calls import custom_call
from xlalite.hlo.surroundings.host_transfers import HostTransfers, host_transfers
from xlalite.hlo.text import parse
from xlalite.hlo.types.literal import Token

Run = Callable[..., np.ndarray]


def entry(body: str, before: str = "", header: str = "HloModule m") -> str:
    return f"{header}\n{before}\nENTRY e {{\n{body}\n}}\n"


DYNAMIC = entry(
    """  x = f32[6,2] parameter(0)
  n = s32[] parameter(1)
  s = f32[<=6,2] set-dimension-size(x, n), dimensions={0}
  zero = f32[] constant(0)
  total = f32[2] reduce(s, zero), dimensions={0}, to_apply=add
  size = s32[] get-dimension-size(s), dimensions={0}
  ROOT t = (f32[2], s32[], f32[<=6,2]) tuple(total, size, s)""",
    "add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = f32[] add(a, b) }",
)


@pytest.mark.parametrize("size", [0, 1, 4, 6])
def test_only_the_elements_within_a_dynamic_size_count(run: Run, size: int) -> None:
    x = np.arange(12, dtype=np.float32).reshape(6, 2)
    total, found, kept = run(DYNAMIC, x, np.int32(size))
    np.testing.assert_array_equal(total, x[:size].sum(axis=0))
    assert found == size
    np.testing.assert_array_equal(kept, x[:size])


@pytest.mark.parametrize("size", [-1, 7])
def test_a_dynamic_size_beyond_its_bound_has_no_value(run: Run, size: int) -> None:
    with pytest.raises(EvaluationError, match=rf"size {size} of dimension 0 is not in \[0, 6\]"):
        run(DYNAMIC, np.zeros((6, 2), np.float32), np.int32(size))


def test_dynamic_sizes_go_through_other_operations(run: Run) -> None:
    text = entry(
        """  x = f32[6,2] parameter(0)
  n = s32[] parameter(1)
  s = f32[<=6,2] set-dimension-size(x, n), dimensions={0}
  zero = f32[] constant(0)
  y = f32[3,2] slice(x), slice={[0:3], [0:2]}
  c = f32[<=9,2] concatenate(s, y), dimensions={0}
  p = f32[<=11,2] pad(c, zero), padding=1_1x0_0
  t = f32[2,<=11] transpose(p), dimensions={1,0}
  ROOT d = f32[<=11,<=11] dot(p, t), lhs_contracting_dims={1}, rhs_contracting_dims={0}"""
    )
    x = np.arange(12, dtype=np.float32).reshape(6, 2)
    rows = np.pad(np.concatenate([x[:4], x[:3]]), ((1, 1), (0, 0)))
    np.testing.assert_array_equal(run(text, x, np.int32(4)), rows @ rows.T)


def test_dynamic_reshape_takes_its_sizes_at_run_time(run: Run) -> None:
    text = entry(
        """  x = f32[6] parameter(0)
  n = s32[] constant(4)
  two = s32[] constant(2)
  s = f32[<=6] set-dimension-size(x, n), dimensions={0}
  rows = s32[] parameter(1)
  ROOT r = f32[<=3,2] dynamic-reshape(s, rows, two)"""
    )
    np.testing.assert_array_equal(run(text, np.arange(6, dtype=np.float32), np.int32(2)), [[0, 1], [2, 3]])
    with pytest.raises(EvaluationError, match=r"4 elements cannot have the sizes \[3, 2\]"):
        run(text, np.arange(6, dtype=np.float32), np.int32(3))


def test_asynchronous_operations_do_the_work_at_their_start(run: Run) -> None:
    text = entry(
        """  x = f32[3] parameter(0)
  s = ((f32[3]), f32[3], u32[]) async-start(x), calls=negated
  u = ((f32[3]), f32[3], u32[]) async-update(s)
  d = f32[3] async-done(u)
  c = (f32[3], f32[3], u32[]) copy-start(d)
  ROOT r = f32[3] copy-done(c)""",
        "negated { p = f32[3] parameter(0)  ROOT r = f32[3] negate(p) }",
    )
    np.testing.assert_array_equal(run(text, np.array([1, 2, 3], np.float32)), [-1, -2, -3])


def test_tokens_and_domains(run: Run) -> None:
    text = entry(
        """  x = f32[3] parameter(0)
  a = token[] after-all()
  b = token[] after-all(a, a)
  d = f32[3] domain(x), domain={kind="sharding", entry={replicated}, exit={maximal device=0}}
  ROOT r = f32[3] add-dependency(d, b)"""
    )
    np.testing.assert_array_equal(run(text, np.array([1, 2, 3], np.float32)), [1, 2, 3])
    with pytest.raises(ParseError, match=r"operand 0 must be a token, found f32\[3\]"):
        run(entry("  x = f32[3] parameter(0)\n  ROOT a = token[] after-all(x)"))


FEEDS = entry(
    """  t = token[] after-all()
  i = ((f32[2], s32[]), token[]) infeed(t), infeed_config="left"
  data = (f32[2], s32[]) get-tuple-element(i), index=0
  after = token[] get-tuple-element(i), index=1
  x = f32[2] get-tuple-element(data), index=0
  n = f32[2] negate(x)
  o = token[] outfeed(n, after), outfeed_shape=f32[2]{0}
  ROOT r = s32[] get-tuple-element(data), index=1"""
)


def test_infeed_and_outfeed_use_the_connected_host(run: Run) -> None:
    values = [(np.array([i, i + 1], np.float32), np.array(i, np.int32)) for i in range(2)]
    with host_transfers(HostTransfers(values)) as host:
        assert [int(run(FEEDS)), int(run(FEEDS))] == [0, 1]
        with pytest.raises(EvaluationError, match="the host has no more values"):
            run(FEEDS)
    assert [value.tolist() for value in host.outfeed] == [[0, -1], [-1, -2]]


def test_infeed_without_a_host_or_with_the_wrong_value(run: Run) -> None:
    with pytest.raises(EvaluationError, match="infeed: no host is connected"):
        run(FEEDS)
    wrong = (np.zeros(3, np.float32), np.array(0, np.int32))
    with (
        host_transfers(HostTransfers([wrong])),
        pytest.raises(EvaluationError, match=r"gave \(f32\[3\], s32\[\]\), the program expects \(f32\[2\], s32"),
    ):
        run(FEEDS)


def test_send_and_recv_meet_in_a_channel(run: Run) -> None:
    text = entry(
        """  x = f32[2] parameter(0)
  t = token[] after-all()
  s = (f32[2], u32[], token[]) send(x, t), channel_id=7
  sd = token[] send-done(s), channel_id=7
  r = (f32[2], u32[], token[]) recv(sd), channel_id=7
  rd = (f32[2], token[]) recv-done(r), channel_id=7
  ROOT y = f32[2] get-tuple-element(rd), index=0"""
    )
    with host_transfers(HostTransfers()):
        np.testing.assert_array_equal(run(text, np.array([4, 5], np.float32)), [4, 5])
        with pytest.raises(EvaluationError, match="nothing was sent to channel 8"):
            run(text.replace("recv(sd), channel_id=7", "recv(sd), channel_id=8"), np.zeros(2, np.float32))


CUSTOM = entry(
    '  x = f32[2] parameter(0)\n  ROOT r = f32[2] custom-call(x), custom_call_target="TARGET", '
    "custom_call_has_side_effect=true, api_version=API_VERSION_TYPED_FFI, operand_layout_constraints={f32[2]{0}}"
)


def test_custom_calls_are_looked_up_by_target(run: Run, custom_target: Callable[..., None]) -> None:
    custom_target("test.doubled", lambda instruction, operands, call: np.asarray(operands[0] * 2))
    np.testing.assert_array_equal(run(CUSTOM.replace("TARGET", "test.doubled"), np.ones(2, np.float32)), [2, 2])
    np.testing.assert_array_equal(run(CUSTOM.replace("TARGET", "Sharding"), np.ones(2, np.float32)), [1, 1])
    with pytest.raises(ValueError, match="is registered already"):
        custom_call("test.doubled")(lambda instruction, operands, call: operands[0])


@pytest.mark.parametrize(
    ("target", "told"),
    [
        ("mystery", "no meaning is registered for target 'mystery'; `xlalite run --targets` lists all"),
        ("lapack_sgesd", "the nearest known are lapack_sgesvd_ffi, lapack_sgesdd_ffi, "),
        ("topk", "the nearest known is TopK"),
        ("__onednn$matmul", "a library call that a compiler put in"),
    ],
)
def test_an_unknown_target_is_named_with_the_nearest(run: Run, target: str, told: str) -> None:
    with pytest.raises(EvaluationError) as error:
        run(CUSTOM.replace("TARGET", target), np.ones(2, np.float32))
    assert told in str(error.value)
    assert len(str(error.value)) < 400


@pytest.mark.parametrize("backend", ["interpreter", "cpu"])
@pytest.mark.parametrize(
    "body",
    [
        "d = f32[2] custom-call(x), TARGET\n  ROOT r = f32[2] negate(x)",
        "d = f32[2] custom-call(x), TARGET\n  t = (f32[2], f32[2]) tuple(d, x)\n"
        "  g = f32[2] get-tuple-element(t), index=1\n  ROOT r = f32[2] negate(g)",
        "d = f32[0] custom-call(x), TARGET\n"
        "  c = f32[2] concatenate(x, d), dimensions={0}\n  ROOT r = f32[2] negate(c)",
        "i = f32[1000000000000,0] iota(), iota_dimension=0\n  z = f32[] constant(0)\n"
        "  s = f32[0] reduce(i, z), dimensions={0}, to_apply=add\n"
        "  c = f32[2] concatenate(x, s), dimensions={0}\n  ROOT r = f32[2] negate(c)",
    ],
    ids=["dead", "dead in a tuple", "empty", "a large empty array"],
)
def test_what_nobody_reads_is_not_computed(backend: str, body: str) -> None:
    add = "add { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT r = f32[] add(a, b) }"
    text = entry(f"  x = f32[2] parameter(0)\n  {body}", add).replace("TARGET", 'custom_call_target="mystery"')
    x = np.array([1, 2], np.float32)
    np.testing.assert_array_equal(get_backend(backend).compile(parse(text), CompileOptions())(x), -x)


# What XLA's CPU compiler makes of sizes that are known only at run time.
RUN_TIME_SIZES = """HloModule m, is_scheduled=true, entry_computation_layout={(s32[2,5]{1,0}, s32[])->s32[2,<=5]{1,0}}
%wrapped_negate_computation (param_0: s32[2,5]) -> s32[2,5] {
  %param_0 = s32[2,5]{1,0} parameter(0)
  ROOT %f.0 = s32[2,5]{1,0} negate(%param_0)
}
ENTRY %main.1 (a.1: s32[2,5], n.1: s32[]) -> s32[2,<=5] {
  %a.1 = s32[2,5]{1,0} parameter(0)
  %n.1 = s32[] parameter(1)
  %constant = s32[] constant(2)
  %wrapped_negate = s32[2,5]{1,0} fusion(%a.1), kind=kLoop, calls=%wrapped_negate_computation
  %slice = s32[2,<=5]{1,0} custom-call(%wrapped_negate, %constant, %n.1), custom_call_target="SliceToDynamic"
  %pad = (s32[2,5]{1,0}, s32[], s32[]) custom-call(%slice), custom_call_target="PadToStatic"
  %x = s32[2,5]{1,0} get-tuple-element(%pad), index=0
  %m = s32[] get-tuple-element(%pad), index=1
  %k = s32[] get-tuple-element(%pad), index=2
  ROOT %custom-call = s32[2,<=5]{1,0} custom-call(%x, %m, %k), custom_call_target="SliceToDynamic"
}
"""


@pytest.mark.parametrize("backend", ["interpreter", "cpu"])
def test_xla_s_calls_around_run_time_sizes(backend: str) -> None:
    x = np.arange(10, dtype=np.int32).reshape(2, 5)
    found = get_backend(backend).compile(parse(RUN_TIME_SIZES), CompileOptions())(x, np.int32(3))
    np.testing.assert_array_equal(found, -x[:, :3])


@pytest.mark.parametrize("backend", ["interpreter", "cpu"])
def test_tokens_are_results(backend: str) -> None:
    text = entry(
        "  x = f32[2] parameter(0)\n  k = token[] after-all()\n  i = (token[], f32[2]) tuple(k, x)\n"
        "  ROOT r = ((token[], f32[2]), token[]) tuple(i, k)"
    )
    (first, array), last = get_backend(backend).compile(parse(text), CompileOptions())(np.ones(2, np.float32))
    assert first == last == Token()
    np.testing.assert_array_equal(array, [1, 1])


@pytest.mark.parametrize("backend", ["interpreter", "cpu"])
@pytest.mark.parametrize(
    "target",
    [
        "SPMDFullToShardShape",
        "SPMDShardToFullShape",
        "ShardBarrierFrom",
        "ShardBarrierTo",
        "xla.sdy.GlobalToLocalShape",
    ],
)
def test_sharding_means_nothing_on_one_device(backend: str, target: str) -> None:
    text = CUSTOM.replace("TARGET", target)
    x = np.array([1, 2], np.float32)
    np.testing.assert_array_equal(get_backend(backend).compile(parse(text), CompileOptions())(x), x)
    changed = get_backend(backend).compile(parse(text.replace("r = f32[2]", "r = f32[1]")), CompileOptions())
    with pytest.raises(XlaliteError, match=rf"target '{target}' gave f32\[2\], expected f32\[1\]"):
        changed(x)


def test_side_effects_come_from_attributes_and_channels() -> None:
    custom = parse(CUSTOM).entry_computation.root
    assert custom.has_side_effect
    assert not parse(CUSTOM.replace("custom_call_has_side_effect=true, ", "")).entry_computation.root.has_side_effect
    permute = "  x = f32[] parameter(0)\n  ROOT r = f32[] collective-permute(x), {}source_target_pairs={{{{0,0}}}}"
    assert parse(entry(permute.format("channel_id=3, "))).entry_computation.root.has_side_effect
    assert not parse(entry(permute.format(""))).entry_computation.root.has_side_effect
    for name in ("infeed", "outfeed", "send", "send-done", "recv", "recv-done"):
        assert OPS[name].has(Trait.SIDE_EFFECT)


ADD = "add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = f32[] add(a, b) }"


@pytest.mark.parametrize(
    ("body", "shape"),
    [
        ("ROOT r = f32[2,4] all-reduce(x), replica_groups={}, to_apply=add", (2, 4)),
        (
            "s = f32[2,4] all-reduce-start(x), replica_groups={}, to_apply=add\nROOT r = f32[2,4] all-reduce-done(s)",
            (2, 4),
        ),
        (
            "s = (f32[2,4], f32[2,4]) all-gather-start(x), replica_groups={{0}}, dimensions={1}\n"
            "ROOT r = f32[2,4] all-gather-done(s)",
            (2, 4),
        ),
        (
            "s = (f32[2,4], f32[2,4], u32[], u32[]) collective-permute-start(x), source_target_pairs={{0,0}}\n"
            "ROOT r = f32[2,4] collective-permute-done(s)",
            (2, 4),
        ),
        ("ROOT r = f32[2,4] collective-broadcast(x), replica_groups={{0}}", (2, 4)),
        ("ROOT r = f32[2,4] reduce-scatter(x), replica_groups={}, dimensions={0}, to_apply=add", (2, 4)),
        ("ROOT r = (f32[2,4]) all-to-all(x), replica_groups={{0}}", (2, 4)),
    ],
)
def test_collectives_of_one_device_give_their_operand(run: Run, body: str, shape: tuple[int, ...]) -> None:
    x = np.arange(8, dtype=np.float32).reshape(shape)
    found = run(entry(f"  x = f32[2,4] parameter(0)\n  {body}", ADD), x)
    np.testing.assert_array_equal(found[0] if isinstance(found, tuple) else found, x)


def test_a_device_that_nobody_sends_to_receives_zeros(run: Run) -> None:
    text = entry("  x = f32[2] parameter(0)\n  ROOT r = f32[2] collective-permute(x), source_target_pairs={}")
    np.testing.assert_array_equal(run(text, np.ones(2, np.float32)), [0, 0])


def test_ragged_all_to_all_moves_rows(run: Run) -> None:
    text = entry(
        """  x = f32[4] parameter(0)
  y = f32[5] parameter(1)
  from = s32[1] constant({1})
  count = s32[1] constant({2})
  to = s32[1] constant({3})
  ROOT r = f32[5] ragged-all-to-all(x, y, from, count, to, count), replica_groups={{0}}"""
    )
    found = run(text, np.array([1, 2, 3, 4], np.float32), np.zeros(5, np.float32))
    np.testing.assert_array_equal(found, [0, 0, 0, 2, 3])


@pytest.mark.parametrize(
    ("header", "body"),
    [
        ("HloModule m", "ROOT r = f32[4] all-reduce(x), replica_groups={{0,1}}, to_apply=add"),
        ("HloModule m, replica_count=4", "ROOT r = f32[4] all-reduce(x), replica_groups={}, to_apply=add"),
        ("HloModule m", "ROOT r = f32[8] all-gather(x), replica_groups={{0,1}}, dimensions={0}"),
        ("HloModule m", "ROOT r = f32[4] collective-permute(x), source_target_pairs={{0,1},{1,0}}"),
    ],
)
def test_more_devices_than_one_are_refused(run: Run, header: str, body: str) -> None:
    with pytest.raises(EvaluationError, match=r"\(%r\) needs"):
        run(entry(f"  x = f32[4] parameter(0)\n  {body}", ADD, header), np.zeros(4, np.float32))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("ROOT r = f32[6] all-gather(x), replica_groups={{0,1}}, dimensions={0}", r"expected f32\[8\]"),
        (
            "ROOT r = f32[2] reduce-scatter(x), replica_groups={{0,1,2}}, dimensions={0}, to_apply=add",
            "not divisible by 3",
        ),
        ("ROOT r = f32[4] all-reduce(x), replica_groups={{0,1},{2}}, to_apply=add", r"one size, found \[1, 2\]"),
        ("ROOT r = f32[4] all-to-all(x), replica_groups={{0,1,2}}, dimensions={0}", "not divisible by 3 devices"),
        ("ROOT r = f32[4] all-gather(x), replica_groups={{0}}, dimensions={1}", "not a dimension of rank 1"),
    ],
)
def test_collective_shapes_are_checked(body: str, message: str) -> None:
    with pytest.raises(XlaliteError, match=message):
        parse(entry(f"  x = f32[4] parameter(0)\n  {body}", ADD))


def test_values_of_tokens_are_tokens(run: Run) -> None:
    assert run(entry("  ROOT t = token[] after-all()")) == Token()
