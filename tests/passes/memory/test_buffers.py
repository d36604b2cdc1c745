"""Schedules, copies and the memory of values."""

import random
from collections.abc import Callable

import pytest

from xlalite.hlo.errors import PassError
from xlalite.hlo.evaluation.evaluator import evaluate
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.text import parse
from xlalite.hlo.verification.verifier import verify
from xlalite.passes.memory.buffer_assignment import assign_buffers
from xlalite.passes.memory.buffers import ALIGNMENT_BYTES, AllocationKind, BufferAssignment
from xlalite.passes.memory.copy_insertion import CopyInsertion
from xlalite.passes.memory.scheduler import Scheduler
from xlalite.passes.preparation.flatten_call_graph import FlattenCallGraph

LOOP = """HloModule loop
cond {{ s = (s32[], f32[4], f32[4]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(5)
  ROOT lt = pred[] compare(i, n), direction=LT }}
body {{ s = (s32[], f32[4], f32[4]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  v = f32[4] get-tuple-element(s), index=1
  w = f32[4] get-tuple-element(s), index=2
  one = s32[] constant(1)
  i1 = s32[] add(i, one)
  {step}
  ROOT t = (s32[], f32[4], f32[4]) tuple(i1, {v}, {w}) }}
ENTRY e {{
  v0 = f32[4] parameter(0)
  w0 = f32[4] parameter(1)
  k = s32[] constant(0)
  init = (s32[], f32[4], f32[4]) tuple(k, v0, w0)
  ROOT r = (s32[], f32[4], f32[4]) while(init), condition=cond, body=body
}}
"""


def prepared(text: str) -> HloModule:
    """The module scheduled and with copies."""
    module = parse(text)
    FlattenCallGraph().run(module)
    Scheduler().run(module)
    CopyInsertion().run(module)
    verify(module)
    return module


def copies(module: HloModule) -> list[str]:
    """What was copied and why."""
    return [f"{d.subject[0]}: {d.reason}" for d in module.decisions if d.decided_by == "copy-insertion"]


def the_loop(module: HloModule) -> HloInstruction:
    """The only `while` of the entry."""
    return next(i for i in module.entry_computation.instructions if i.opcode == "while")


def copied_arrays(module: HloModule) -> int:
    """Number of copies of arrays with dimensions."""
    return sum(i.opcode == "copy" and i.shape.rank > 0 for i in module.instructions())


def place(assignment: BufferAssignment, instruction: HloInstruction, *index: int) -> tuple[int, int]:
    """Allocation number and offset."""
    piece = assignment.slice_of(instruction, index)
    return piece.allocation.number, piece.offset


def test_loop_state_lies_in_one_place() -> None:
    module = prepared(LOOP.format(step="v1 = f32[4] negate(v)", v="v1", w="w"))
    assignment = assign_buffers(module)
    loop = the_loop(module)
    body = loop.called_computations[1]
    parameter = body.parameters[0]
    assert place(assignment, loop, 1) == place(assignment, parameter, 1) == place(assignment, body.root, 1)


def test_the_test_of_a_loop_does_not_lie_in_its_state() -> None:
    text = LOOP.format(step="v1 = pred[] constant(true)", v="v1", w="w").replace("f32[4]", "pred[]")
    less = (
        "q = pred[] get-tuple-element(s), index=1\n  l = pred[] compare(i, n), direction=LT\n"
        "  ROOT lt = pred[] and(q, l)"
    )
    module = prepared(text.replace("ROOT lt = pred[] compare(i, n), direction=LT", less))
    loop, assignment = the_loop(module), assign_buffers(module)
    condition = loop.called_computations[0]
    assert place(assignment, condition.root) != place(assignment, loop, 1)


def test_loop_state_that_the_body_passes_through_is_not_copied() -> None:
    module = prepared(LOOP.format(step="v1 = f32[4] add(v, w)", v="v1", w="w"))
    assert not [line for line in copies(module) if line.startswith("w0: ") and "still" in line]
    body = the_loop(module).called_computations[1]
    assert copied_arrays(module) == 2, "v0 before the loop, w0 as an output of its own; none in the loop"
    assert not [i for i in body.instructions if i.opcode == "copy" and i.shape.rank]


def test_loop_that_exchanges_its_state_reads_both_before_it_writes() -> None:
    module = prepared(LOOP.format(step="", v="w", w="v"))
    body = the_loop(module).called_computations[1]
    order = [i for i in body.instructions if i.opcode == "copy" and i.shape.rank]
    assert [copy.operand(0).opcode for copy in order] == ["get-tuple-element"] * 2 + ["copy"] * 2


def test_copies_keep_values(random_module, random_arguments, assert_same_bits) -> None:
    for seed in range(30):
        module = random_module(random.Random(seed), 25)
        arguments = random_arguments(module)
        expected = evaluate(module, *arguments)
        FlattenCallGraph().run(module)
        Scheduler().run(module)
        CopyInsertion().run(module)
        verify(module)
        assert_same_bits(expected, evaluate(module, *arguments), str(module))


def test_assignment_without_needed_copies_is_refused() -> None:
    module = parse(LOOP.format(step="", v="w", w="v"))
    Scheduler().run(module)
    with pytest.raises(PassError, match="expected a copy"):
        assign_buffers(module)


def test_update_in_loop_overwrites_its_operand() -> None:
    step = """z = f32[1] constant({7})
  v1 = f32[4] dynamic-update-slice(v, z, i)"""
    module = prepared(LOOP.format(step=step, v="v1", w="w"))
    body = the_loop(module).called_computations[1]
    update = next(i for i in body.instructions if i.opcode == "dynamic-update-slice")
    assignment = assign_buffers(module)
    assert assignment.slice_of(update) == assignment.slice_of(update.operand(0))
    assert not [i for i in body.instructions if i.opcode == "copy" and i.shape.rank]


def test_reader_runs_before_the_update_that_overwrites() -> None:
    step = """z = f32[1] constant({7})
  v1 = f32[4] dynamic-update-slice(v, z, i)
  w1 = f32[4] negate(v)"""
    module = prepared(LOOP.format(step=step, v="v1", w="w1"))
    order = [i.opcode for i in the_loop(module).called_computations[1].instructions]
    assert order.index("negate") < order.index("dynamic-update-slice")
    assert copied_arrays(module) == 2, "both parameters, before the loop"


def test_state_is_read_before_what_it_becomes_overwrites_it() -> None:
    """The counter and v are needed by the last of three steps, which takes most memory and would come last."""
    step = """v1 = f32[4] negate(v)
  p = f32[4,4] broadcast(v), dimensions={0}
  q = f32[4,4] dynamic-slice(p, i, i), dynamic_slice_sizes={4,4}
  zero = f32[] constant(0)
  w1 = f32[4] reduce(q, zero), dimensions={1}, to_apply=sum"""
    text = LOOP.format(step=step, v="v1", w="w1").replace(
        "cond {", "sum { a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT c = f32[] add(a, b) }\ncond {"
    )
    module = prepared(text)
    order = [i.name for i in the_loop(module).called_computations[1].instructions]
    assert order.index("p") < order.index("v1")
    assert order.index("q") < order.index("i1")
    assert copied_arrays(module) == 2, "both parameters, before the loop"


def test_schedule_frees_memory_early() -> None:
    """Each branch is reduced before the next is computed, so only one wide array lives at a time."""
    branches = "".join(
        f" w{n} = f32[1000] broadcast(x{n}), dimensions={{}}\n s{n} = f32[1000] sine(w{n})\n"
        f" d{n} = f32[1] slice(s{n}), slice={{[0:1]}}\n"
        for n in range(4)
    )
    parameters = "".join(f" x{n} = f32[] parameter({n})\n" for n in range(4))
    total = " t1 = f32[1] add(d0, d1)\n t2 = f32[1] add(t1, d2)\n ROOT t3 = f32[1] add(t2, d3)\n"
    module = prepared(f"HloModule s\nENTRY e {{\n{parameters}{branches}{total}}}")
    assert assign_buffers(module).arena_bytes < 2 * 4096


def test_values_alive_together_share_no_byte(random_module: Callable[..., HloModule]) -> None:
    """Liveness found anew, by walking the schedule of programs without control flow."""
    checked = 0
    for seed in range(60):
        module = random_module(random.Random(seed), 25)
        FlattenCallGraph().run(module)
        if any(i.opcode in ("while", "conditional", "call") for i in module.entry_computation.instructions):
            continue
        Scheduler().run(module)
        CopyInsertion().run(module)
        assignment = assign_buffers(module)
        assert not [a for a in assignment.allocations if a.size_bytes < 0]
        checked += _check_no_overlap(module, assignment)
    assert checked > 100


def _check_no_overlap(module: HloModule, assignment: BufferAssignment) -> int:
    """Runs the schedule over a map of bytes: a read must find the bytes of what it reads."""
    renames = {"tuple", "get-tuple-element", "reshape", "bitcast", "opt-barrier", "add-dependency", "after-all"}
    written: dict[tuple[int, int], HloInstruction] = {}
    reads = 0
    for instruction in module.entry_computation.instructions:
        if instruction.opcode in renames or not instruction.shape.is_array:
            continue
        for operand in instruction.operands:
            source = operand
            while source.opcode in renames and source.operands and source.opcode != "tuple":
                source = source.operand(0)
            if not source.shape.is_array or source.opcode in renames:
                continue
            piece = assignment.slice_of(source)
            for byte in range(piece.offset, piece.offset + piece.size_bytes, 4):
                assert written[piece.allocation.number, byte] is source, f"%{source.name} was overwritten"
                reads += 1
        piece = assignment.slice_of(instruction)
        assert piece.allocation.kind is not AllocationKind.ARENA or piece.offset % ALIGNMENT_BYTES == 0
        for byte in range(piece.offset, piece.offset + piece.size_bytes, 4):
            written[piece.allocation.number, byte] = instruction
    return reads
