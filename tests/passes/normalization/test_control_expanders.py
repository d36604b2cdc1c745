"""What becomes a loop, and what happens at once: scans, asynchronous operations, collectives of one device."""

import numpy as np
import pytest

from xlalite.hlo.evaluation.evaluator import evaluate
from xlalite.hlo.evaluation.spmd import evaluate_spmd
from xlalite.hlo.surroundings.host_transfers import HostTransfers, host_transfers
from xlalite.passes.normalization.async_expander import AsyncExpander
from xlalite.passes.normalization.collective_expander import CollectiveExpander
from xlalite.passes.normalization.map_inliner import MapInliner
from xlalite.passes.normalization.scan_expander import ScanExpander

STEP = """HloModule m

step {
  x = f32[2,4] parameter(0)
  n = s32[2,4] parameter(1)
  c = f32[2,4] parameter(2)
  t = (s32[], f32[3]) parameter(3)
  f = f32[2,4] convert(n)
  m = f32[2,4] multiply(c, x)
  s = f32[2,4] add(m, f)
  k = s32[] get-tuple-element(t), index=0
  one = s32[] constant(1)
  j = s32[] add(k, one)
  v = f32[3] get-tuple-element(t), index=1
  w = f32[3] negate(v)
  u = (s32[], f32[3]) tuple(j, w)
  ROOT r = (f32[2,4], f32[2,4], (s32[], f32[3])) tuple(s, s, u)
}

ENTRY e {
  x = f32[2,SIZE,4] parameter(0)
  n = s32[2,SIZE,4] parameter(1)
  c = f32[2,4] parameter(2)
  t = (s32[], f32[3]) parameter(3)
  ROOT r = (f32[2,SIZE,4], f32[2,4], (s32[], f32[3])) scan(x, n, c, t), dimensions={1}, ATTRSto_apply=step
}
"""


@pytest.mark.parametrize("size", [0, 1, 5])
@pytest.mark.parametrize("attrs", ["", "is_reverse=true, "])
def test_a_scan_is_a_loop(size: int, attrs: str, transform) -> None:
    result = transform(ScanExpander(), STEP.replace("SIZE", str(size)).replace("ATTRS", attrs))
    assert "scan" not in result.opcodes
    assert ("while" in result.opcodes) == (size > 0)


def test_a_scan_of_one_result_is_no_tuple(transform) -> None:
    text = """HloModule m

step {
  x = s8[] parameter(0)
  ROOT r = s8[] negate(x)
}

ENTRY e {
  x = s8[6] parameter(0)
  ROOT r = s8[6] scan(x), dimensions={0}, num_carries=0, to_apply=step
}
"""
    assert "scan" not in transform(ScanExpander(), text).opcodes


ASYNC = {
    "copy": """
  x = f32[4] parameter(0)
  s = (f32[4], f32[4], u32[]) copy-start(x)
  d = f32[4] copy-done(s)
  ROOT r = f32[4] negate(d)""",
    "call": """
  x = f32[4] parameter(0)
  s = ((f32[4]), f32[4], u32[], token[]) async-start(x), calls=twice
  u = ((f32[4]), f32[4], u32[], token[]) async-update(s)
  d = f32[4] async-done(u)
  ROOT r = f32[4] negate(d)""",
    "all-reduce": """
  x = f32[4] parameter(0)
  s = f32[4] all-reduce-start(x), replica_groups={}, to_apply=sum
  d = f32[4] all-reduce-done(s)
  ROOT r = f32[4] negate(d)""",
    "all-gather": """
  x = f32[4] parameter(0)
  y = f32[3] parameter(1)
  s = ((f32[4], f32[3]), (f32[4], f32[3])) all-gather-start(x, y), replica_groups={{0}}, dimensions={0}
  ROOT d = (f32[4], f32[3]) all-gather-done(s)""",
    "collective-permute": """
  x = f32[4] parameter(0)
  s = (f32[4], f32[4], u32[], u32[]) collective-permute-start(x), source_target_pairs={{0,0}}
  ROOT d = f32[4] collective-permute-done(s)""",
}
FUNCTIONS = """twice {
  v = f32[4] parameter(0)
  ROOT r = f32[4] add(v, v)
}

sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b)
}
"""


def program(body: str, header: str = "") -> str:
    return f"HloModule m{header}\n\n{FUNCTIONS}\nENTRY e {{{body}\n}}\n"


@pytest.mark.parametrize("kind", ASYNC)
def test_what_starts_and_ends_happens_at_once(kind: str, transform) -> None:
    result = transform(AsyncExpander(), program(ASYNC[kind]))
    assert not any(opcode.endswith(("-start", "-update", "-done")) for opcode in result.opcodes)
    assert kind in result.opcodes


def test_what_starts_in_a_loop_and_ends_behind_it_happens_at_once(transform) -> None:
    text = """HloModule m

on {
  s = (s32[], (f32[4], f32[4], u32[])) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(3)
  ROOT r = pred[] compare(i, n), direction=LT
}

body {
  s = (s32[], (f32[4], f32[4], u32[])) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  one = s32[] constant(1)
  j = s32[] add(i, one)
  c = (f32[4], f32[4], u32[]) get-tuple-element(s), index=1
  d = f32[4] copy-done(c)
  m = f32[4] add(d, d)
  n = (f32[4], f32[4], u32[]) copy-start(m)
  ROOT r = (s32[], (f32[4], f32[4], u32[])) tuple(j, n)
}

ENTRY e {
  x = f32[4] parameter(0)
  z = s32[] constant(0)
  c = (f32[4], f32[4], u32[]) copy-start(x)
  t = (s32[], (f32[4], f32[4], u32[])) tuple(z, c)
  l = (s32[], (f32[4], f32[4], u32[])) while(t), condition=on, body=body
  e = (f32[4], f32[4], u32[]) get-tuple-element(l), index=1
  ROOT r = f32[4] copy-done(e)
}
"""
    assert not {"copy-start", "copy-done"} & set(transform(AsyncExpander(), text).opcodes)


TRANSFER = """
  x = f32[4] parameter(0)
  t = token[] after-all()
  s = (f32[4], u32[], token[]) send(x, t), channel_id=1PAIRS
  d = token[] send-done(s), channel_id=1
  v = (f32[4], u32[], token[]) recv(d), channel_id=1PAIRS
  w = (f32[4], token[]) recv-done(v), channel_id=1
  ROOT r = f32[4] get-tuple-element(w), index=0"""


def test_what_the_host_sends_is_there_at_once(transform) -> None:
    result = transform(AsyncExpander(), program(TRANSFER.replace("PAIRS", "")), evaluated=False)
    assert not {"send-done", "recv-done"} & set(result.opcodes)
    x = np.arange(4, dtype=np.float32)
    with host_transfers(HostTransfers()):
        np.testing.assert_array_equal(evaluate(result.module, x), x)


def test_what_a_device_sends_is_waited_for(transform) -> None:
    pairs = ', frontend_attributes={_xla_send_recv_source_target_pairs="{{0,1},{1,0}}"}'
    result = transform(AsyncExpander(), program(TRANSFER.replace("PAIRS", pairs)), evaluated=False)
    assert "recv-done" in result.opcodes
    x, y = np.arange(8, dtype=np.float32).reshape(2, 4)
    found = evaluate_spmd(result.module, [[x], [y]], replica_count=2)
    np.testing.assert_array_equal(found, [y, x])


COLLECTIVES = {
    "all-reduce": "r = f32[4] all-reduce(x), replica_groups={}, to_apply=sum",
    "all-reduce of two": "r = (f32[4], f32[4]) all-reduce(x, x), replica_groups={{0}}, to_apply=sum",
    "all-gather": "r = f32[4] all-gather(x), replica_groups={{0}}, dimensions={0}",
    "reduce-scatter": "r = f32[4] reduce-scatter(x), replica_groups={{0}}, dimensions={0}, to_apply=sum",
    "all-to-all": "r = f32[4] all-to-all(x), replica_groups={{0}}, dimensions={0}",
    "all-to-all of a tuple": "r = (f32[4]) all-to-all(x), replica_groups={{0}}",
    "collective-broadcast": "r = f32[4] collective-broadcast(x), replica_groups={{0}}",
    "collective-permute": "r = f32[4] collective-permute(x), source_target_pairs={{0,0}}",
    "nobody sends": "r = f32[4] collective-permute(x), source_target_pairs={}",
    "global numbers": "r = f32[4] all-reduce(x), channel_id=1, replica_groups={{0}}, use_global_device_ids=true,"
    " to_apply=sum",
    "partition-id": "r = u32[] partition-id()",
    "replica-id": "r = u32[] replica-id()",
}
SLICES = """
  x = f32[4] parameter(0)
  y = f32[6] parameter(1)
  i = s32[] parameter(2)
  a = (s32[]) tuple(i)
  b = s32[] constant(2)
  c = (s32[]) tuple(b)
  ROOT r = f32[6] collective-permute(x, y, a, c), source_target_pairs={PAIRS}, slice_sizes={{3}}"""


@pytest.mark.parametrize("kind", COLLECTIVES)
def test_one_device_talks_to_itself(kind: str, transform) -> None:
    result = transform(CollectiveExpander(), program(f"\n  x = f32[4] parameter(0)\n  ROOT {COLLECTIVES[kind]}"))
    assert result.changed
    assert not {opcode for opcode in result.opcodes if opcode.startswith(("all-", "collective-", kind))}


@pytest.mark.parametrize("pairs", ["{0,0}", ""])
def test_one_device_updates_its_own_array(pairs: str, transform) -> None:
    result = transform(CollectiveExpander(), program(SLICES.replace("PAIRS", pairs)))
    assert "collective-permute" not in result.opcodes


@pytest.mark.parametrize(
    ("header", "root"),
    [
        ("", "r = f32[8] all-gather(x), replica_groups={{0,1}}, dimensions={0}"),
        ("", "r = f32[4] collective-permute(x), source_target_pairs={{0,1}}"),
        ("", "r = f32[4] all-reduce(x), replica_groups={{0}}, use_global_device_ids=true, to_apply=sum"),
        (", replica_count=2", "r = f32[4] all-reduce(x), replica_groups={}, to_apply=sum"),
        (", num_partitions=2", "r = u32[] partition-id()"),
        (", replica_count=2", "r = u32[] replica-id()"),
    ],
)
def test_what_needs_other_devices_stays(header: str, root: str, transform) -> None:
    text = program(f"\n  x = f32[4] parameter(0)\n  ROOT {root}", header)
    assert not transform(CollectiveExpander(), text, evaluated=False).changed


def test_a_map_that_asks_for_the_device_s_number_is_inlined(transform) -> None:
    text = """HloModule m, replica_count=2

f {
  a = u32[] parameter(0)
  n = u32[] replica-id()
  ROOT r = u32[] add(a, n)
}

ENTRY e {
  x = u32[5] parameter(0)
  ROOT r = u32[5] map(x), dimensions={0}, to_apply=f
}
"""
    result = transform(MapInliner(), text)
    assert [one.opcode for one in result.module.entry_computation.instructions].count("map") == 0
    x = np.arange(5, dtype=np.uint32)
    np.testing.assert_array_equal(evaluate_spmd(result.module, [[x], [x]]), [x, x + 1])
