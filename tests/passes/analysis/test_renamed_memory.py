"""Scheduler, costs, buffers and statistics agree on which operations write memory: the declaration says it once."""

import pytest

from xlalite.hlo import collect_statistics, parse
from xlalite.hlo.ir.op import Memory
from xlalite.hlo.ops import OPS
from xlalite.passes.analysis.buffer_values import BufferValues
from xlalite.passes.analysis.cost_analysis import cost_analysis
from xlalite.passes.memory.scheduler import schedule

CHAIN = """
HloModule chain
ENTRY main {
  x = f32[1000] parameter(0)
  token = token[] after-all()
  RENAMED
  ROOT result = f32[1000] negate(renamed)
}
"""
RENAMING = {
    "add-dependency": "renamed = f32[1000] add-dependency(x, token)",
    "bitcast": "renamed = f32[1000] bitcast(x)",
    "domain": 'renamed = f32[1000] domain(x), domain={kind="sharding", entry={replicated}, exit={replicated}}',
    "get-tuple-element": "pair = (f32[1000]) tuple(x)\n  renamed = f32[1000] get-tuple-element(pair), index=0",
    "opt-barrier": "renamed = f32[1000] opt-barrier(x)",
    "reshape": "matrix = f32[10,100] reshape(x)\n  renamed = f32[1000] reshape(matrix)",
    "tuple": "pair = (f32[1000]) tuple(x)\n  renamed = f32[1000] get-tuple-element(pair), index=0",
}


def test_every_operation_that_renames_memory_is_tried() -> None:
    assert set(RENAMING) == {name for name, op in OPS.items() if op.memory is Memory.NAMES_OPERAND}


@pytest.mark.parametrize("opcode", RENAMING)
def test_renamed_memory_costs_nothing_and_is_no_array_of_its_own(opcode: str) -> None:
    module = parse(CHAIN.replace("RENAMED", RENAMING[opcode]))
    computation = module.entry_computation
    assert cost_analysis(module).bytes_accessed == 2 * 4000, "one kernel reads x and writes the result"
    computation.set_order(schedule(computation))
    module.update_config(is_scheduled=True)
    written = {value.instruction.name for value in BufferValues(module).values}
    assert written == {"x", "result"}
    assert collect_statistics(module).value_bytes == 2 * 4000


def test_scheduler_does_not_hold_a_renamed_array_for_a_new_one() -> None:
    """Both chains are ready; the barrier frees nothing and allocates nothing, so post order decides as without it."""
    text = """
HloModule choice
ENTRY main {
  x = f32[1000] parameter(0)
  small = f32[10] parameter(1)
  barrier = f32[1000] opt-barrier(x)
  sum = f32[1000] add(barrier, barrier)
  other = f32[10] negate(small)
  ROOT both = (f32[1000], f32[10]) tuple(sum, other)
}
"""
    order = [instruction.name for instruction in schedule(parse(text).entry_computation)]
    assert order.index("barrier") < order.index("other"), "a barrier of 4,000 bytes is no allocation"
