"""One native function for a whole module: the entry calls kernels in schedule order.

`while`, `conditional` and `call` become native control flow; nothing returns to Python between kernels. Equal kernels
are emitted once. The entry is `i32 entry(ptr params, ptr results, ptr arena, ptr context)`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain

import numpy as np

from xlalite.backends.codegen.kernels.constant_sharing import ConstantSharing
from xlalite.backends.codegen.kernels.kernel import Declined, Kernel
from xlalite.backends.codegen.kernels.planner import KernelPlan, KernelPlans, grain_of
from xlalite.backends.codegen.kernels.scratch import COUNTER_BYTES, aligned, open_slots, scratch_area_bytes
from xlalite.backends.codegen.llvm import (
    I8,
    I32,
    I64,
    PTR,
    VOID,
    Function,
    FunctionBuilder,
    ModuleBuilder,
    Value,
    constant,
)
from xlalite.backends.cpu.emission.constant_pool import symbol_of
from xlalite.backends.cpu.emission.emitted_module import ENTRY, EmittedModule
from xlalite.backends.cpu.emission.evaluated import (
    evaluated_decision,
    evaluated_module,
    evaluator_symbol,
)
from xlalite.backends.cpu.emission.exchanges import COLLECTIVES, TRANSFERS, MeetingNumbers
from xlalite.backends.cpu.emission.inline_scalars import compute_inline
from xlalite.backends.cpu.emission.kernel_clock import KernelClock
from xlalite.backends.cpu.emission.parallel_region import Step, TouchedMemory, emit_region, region_decision
from xlalite.backends.cpu.emission.program_text import ProgramText
from xlalite.backends.cpu.emission.scalar_slots import ScalarSlots, is_scalar_work, scalars_with_slots
from xlalite.backends.cpu.emission.shared_addresses import places_of, share_addresses
from xlalite.backends.cpu.emission.step_chunks import StepChunks
from xlalite.backends.cpu.emission.step_plans import StepPlans
from xlalite.backends.cpu.native.thread_pool import PARALLEL_FOR
from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.types.decision import Decision, Number
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.literal import Literal
from xlalite.hlo.types.shape import ShapeIndex
from xlalite.passes.memory.buffers import ALIGNMENT_BYTES, Allocation, AllocationKind, BufferAssignment, BufferSlice

_EMBEDDED_CONSTANT_BYTES = 256
"""Constants up to this size stand in the code; larger ones are linked in by name."""


def emit_module(
    module: HloModule,
    assignment: BufferAssignment,
    builder: ModuleBuilder,
    *,
    num_threads: int,
    profile: bool = False,
    offer: Callable[[str], None] | None = None,
) -> EmittedModule:
    """Writes a scheduled module; what no kernel computes asks the evaluator. For `offer` see `ProgramText`."""
    text = ProgramText(builder, num_threads, offer)
    return _ModuleEmitter(module, assignment, text, KernelClock(builder, runs=profile)).emit()


class _ModuleEmitter:
    def __init__(self, module: HloModule, assignment: BufferAssignment, text: ProgramText, clock: KernelClock) -> None:
        self._hlo = module
        self._assignment = assignment
        self._num_threads = text.threads
        self._module, self._clock, self._text = text.module, clock, text
        self._constants: dict[str, Literal] = {}
        self._module.pool = lambda data: self._pooled(Literal(np.frombuffer(data, np.uint8)))
        self._emitted = EmittedModule("")
        self._fb: FunctionBuilder = self._module.function(ENTRY, I32, (PTR, PTR, PTR, PTR))
        self._pointers: dict[int, Value] = {}
        self._waiting: list[tuple[Step, list[Value], list[BufferSlice]]] = []
        self._touched = TouchedMemory()
        self._chunks = StepChunks(module.entry_computation)
        self._text.keeps_kernels = self._chunks.step_count > 1
        self._loop_depth = 0
        self._apart: dict[HloComputation, Function] = {}
        scalars = scalars_with_slots(module, assignment, self._chunks)
        self._slots = ScalarSlots(self._fb, scalars, self._pointer)
        self._sharing = ConstantSharing()
        self._evaluator_call_numbers: dict[str, int] = {}
        self._meetings = MeetingNumbers()
        self._handlers: dict[str, Callable[[HloInstruction], None]] = {
            "while": self._emit_while,
            "conditional": self._emit_conditional,
            "call": self._emit_call,
            "rng-get-and-update-state": self._emit_random_state,
            "replica-id": self._emit_device_number,
            "partition-id": self._emit_device_number,
            **dict.fromkeys(COLLECTIVES, self._emit_collective),
            **dict.fromkeys(TRANSFERS, self._emit_transfer),
        }
        steps = chain.from_iterable(self._chunks.of(module.entry_computation))
        by_kernels = [instruction for instruction in steps if instruction.opcode not in self._handlers]
        self._plans = StepPlans(KernelPlans(self._num_threads, self._module.target), assignment, by_kernels)
        self._plans.announce(self._module)

    def emit(self) -> EmittedModule:
        self._loop_depth += 1
        for computation in self._chunks.apart:
            self._apart[computation] = self._part(partial(self._emit_chunks, computation))
        self._loop_depth -= 1
        with self._clock.timed(self._fb, ""):
            self._emit_computation(self._hlo.entry_computation)
            self._slots.write_back_results()
        self._fb.ret(0)
        self._emitted.constants = [*self._constants.values()]
        self._emitted.clocked = self._clock.kernels(self._hlo)
        if not self._fb.has_loops:
            self._fb.only_calls()
        self._emitted.text = self._text.text()
        return self._emitted

    def _base_pointer(self, allocation: Allocation) -> Value:
        params, results, arena, _ = self._fb.parameters
        match allocation.kind:
            case AllocationKind.ARENA:
                return arena
            case AllocationKind.PARAMETER:
                return self._fb.held(PTR, params, allocation.leaf)
            case AllocationKind.OUTPUT:
                return self._fb.held(PTR, results, allocation.leaf)
            case AllocationKind.CONSTANT:
                assert allocation.literal is not None, "a constant's allocation has its value"
                return self._constant_pointer(allocation.literal)

    def _constant_pointer(self, literal: Literal) -> Value:
        """Where the value's bytes are; equal bytes are there once, whatever their shapes and types."""
        if literal.size_bytes <= _EMBEDDED_CONSTANT_BYTES:
            return self._module.constant_bytes(literal.value.tobytes())
        return self._module.external_bytes(self._pooled(literal), ALIGNMENT_BYTES, constant=True)

    def _pooled(self, literal: Literal) -> str:
        """The name under which a constant, of the program or of a kernel, is linked in."""
        name = symbol_of(literal)
        self._constants.setdefault(name, literal)
        return name

    def _address(self, instruction: HloInstruction, index: ShapeIndex = ()) -> Value:
        """Where the entry itself reads and writes a value."""
        piece = self._slice(instruction, index)
        return self._slots.get(piece) or self._pointer(piece)

    def _pointer(self, piece: BufferSlice) -> Value:
        base = self._base(piece.allocation)
        return self._fb.gep(I8, base, piece.offset) if piece.offset else base

    def _base(self, allocation: Allocation) -> Value:
        base = self._pointers.get(allocation.number)
        if base is None:
            base = self._pointers[allocation.number] = self._base_pointer(allocation)
        return base

    def _slice(self, instruction: HloInstruction, index: ShapeIndex = ()) -> BufferSlice:
        return self._assignment.slice_of(instruction, index)

    def _emit_computation(self, computation: HloComputation) -> None:
        if computation in self._apart:
            self._call_part(self._apart[computation])
        else:
            self._emit_chunks(computation)

    def _emit_chunks(self, computation: HloComputation) -> None:
        chunks = self._chunks.of(computation)
        for chunk in chunks:
            if len(chunks) == 1:
                self._emit_steps(chunk)
            else:
                self._call_part(self._part(partial(self._emit_steps, chunk)))

    def _emit_steps(self, steps: Iterable[HloInstruction]) -> None:
        for instruction in steps:
            handler = self._handlers.get(instruction.opcode)
            if handler is None:
                self._emit_kernel(instruction)
            else:
                self._emit_waiting()
                handler(instruction)
        self._emit_waiting()

    def _part(self, emit: Callable[[], None]) -> Function:
        """A function for some of many steps: LLVM's time and memory grow faster than functions do."""
        caller, pointers = self._fb, self._pointers
        name = self._module.unique_name("part")
        self._fb, self._pointers = self._module.function(name, I32, (PTR, PTR, PTR, PTR), linkage="hidden"), {}
        emit()
        self._fb.ret(0)
        if not self._fb.has_loops:
            self._fb.only_calls()
        part = self._fb.function
        self._fb, self._pointers = caller, pointers
        return part

    def _call_part(self, part: Function) -> None:
        fb = self._fb
        status = fb.call(part, *fb.parameters)
        with fb.if_(fb.icmp("ne", status, 0), likely=False):
            fb.ret(status)

    def _emit_while(self, instruction: HloInstruction) -> None:
        condition, body = instruction.called_computations
        self._loop_depth += 1
        with self._fb.while_loop(()) as loop:
            self._emit_computation(condition)
            loop.continue_while(self._load_pred(condition.root))
            self._emit_computation(body)
        self._loop_depth -= 1

    def _emit_conditional(self, instruction: HloInstruction) -> None:
        """Branches run in place; an index out of range runs the last one."""
        fb, branches = self._fb, instruction.called_computations
        selector = instruction.operand(0)
        if selector.shape.dtype is DType.PRED:
            choice = fb.if_else(self._load_pred(selector))
            with choice.then():
                self._emit_computation(branches[0])
            with choice.otherwise():
                self._emit_computation(branches[1])
            return
        number = fb.load(I32, self._address(selector), 4)
        blocks = [fb.new_block("branch") for _ in branches]
        join = fb.new_block("endbranch")
        fb.switch(number, blocks[-1], dict(enumerate(blocks[:-1])))
        for branch, block in zip(branches, blocks, strict=True):
            fb.position_at(block)
            self._emit_computation(branch)
            fb.br(join)
        fb.position_at(join)

    def _emit_call(self, instruction: HloInstruction) -> None:
        self._emit_computation(instruction.called_computations[0])

    def _emit_random_state(self, instruction: HloInstruction) -> None:
        from xlalite.backends.codegen.elements.random import counter_before

        self._fb.store(counter_before(self._fb, instruction.attrs.delta), self._address(instruction), 8)

    def _emit_device_number(self, instruction: HloInstruction) -> None:
        from xlalite.backends.cpu.emission.collective_code import rank_of

        fb, partitions = self._fb, self._hlo.config.num_partitions
        rank = rank_of(fb)
        number = fb.udiv(rank, partitions) if instruction.opcode == "replica-id" else fb.urem(rank, partitions)
        fb.store(fb.trunc(number, I32), self._address(instruction), 4)

    def _emit_collective(self, instruction: HloInstruction) -> None:
        from xlalite.backends.cpu.emission.collective_code import CollectiveCode, plan_folds
        from xlalite.backends.cpu.emission.meeting import meeting_of

        meeting = meeting_of(instruction)
        if isinstance(meeting, Declined):
            self._emit_evaluator_call(instruction, meeting.reason)
            return
        folds = plan_folds(instruction, meeting, self._plan_fold)
        if isinstance(folds, Declined):
            self._emit_evaluator_call(instruction, folds.reason)
            return
        self._emitted.meets = True
        operands, results = self._arrays(instruction)
        self._slots.write_back(operands)
        code = CollectiveCode(
            self._fb,
            instruction,
            meeting,
            self._meetings.of(instruction),
            [*map(self._pointer, operands)],
            [*map(self._pointer, results)],
            partial(self._ask_evaluator, instruction),
            self._fail,
            self._run_fold,
            folds,
        )
        with self._clock.timed(self._fb, instruction.opcode, instruction):
            code.emit()
        self._slots.read_back(results)
        reason = "each device reads what the others have where it lies"
        self._record_exchange(instruction, "rendezvous", reason, devices=meeting.count)

    def _emit_transfer(self, instruction: HloInstruction) -> None:
        from xlalite.backends.cpu.emission.transfer_code import TransferCode, why_not_transferred

        reason = why_not_transferred(instruction)
        if reason is not None:
            self._emit_evaluator_call(instruction, reason)
            return
        self._emitted.meets = True
        operands, results = self._arrays(instruction)
        self._slots.write_back(operands)
        code = TransferCode(
            self._fb,
            instruction,
            [*map(self._pointer, operands)],
            [*map(self._pointer, results)],
            self._argument_array,
            partial(self._ask_evaluator, instruction),
        )
        with self._clock.timed(self._fb, instruction.opcode, instruction):
            status = code.emit()
        self._fail(status)
        self._slots.read_back(results)
        self._record_exchange(instruction, "letters", "native code copies what goes, and what has come")

    def _record_exchange(self, instruction: HloInstruction, how: str, reason: str, **numbers: Number) -> None:
        size = sum(piece.size_bytes for pieces in self._arrays(instruction) for piece in pieces)
        found = Decision("kernel planner", (instruction.name,), how, reason, {**numbers, "bytes": size})
        self._emitted.decisions.append(found)

    def _plan_fold(self, fusion: HloInstruction, in_place: tuple[tuple[int, int], ...]) -> KernelPlan | Declined:
        plan = self._plans.of(fusion, in_place)
        if isinstance(plan, KernelPlan) and self._scratch(plan.kernel, plan.grain):
            return Declined("a kernel needs memory of its own")
        return plan

    def _run_fold(
        self, fusion: HloInstruction, plan: KernelPlan, pointers: Sequence[Value], part: tuple[Value, Value] | None
    ) -> None:
        kernel = self._kernel(fusion, plan.kernel)
        if part is None:
            self._call_kernel(kernel, plan.kernel.extent, plan.grain, pointers)
            return
        with self._fb.if_(self._fb.icmp("slt", *part)):
            self._fb.call(kernel, self._argument_array(pointers), *part)

    def _load_pred(self, instruction: HloInstruction) -> Value:
        return self._fb.icmp("ne", self._fb.load(I8, self._address(instruction), 1), 0)

    def _emit_kernel(self, instruction: HloInstruction) -> None:
        plan = self._plans.of(instruction)
        if isinstance(plan, Declined):
            self._emit_evaluator_call(instruction, plan.reason)
            return
        self._emitted.decisions.append(plan.decision)
        operands = [self._slice(operand) for operand in plan.operands]
        results = [self._slice(instruction, index) for index, _ in instruction.shape.leaves()]
        if self._touched.must_precede(operands, results):
            self._emit_waiting()
        if is_scalar_work(plan):
            compute_inline(self._fb, instruction, plan, self._address)
            return
        shared = self._sharing.of(plan)
        if shared is not None:
            plan = replace(plan, kernel=shared.kernel)
            constants = map(self._constant_pointer, shared.constants)
            pointers = [*map(self._pointer, operands), *constants, *map(self._pointer, results)]
            self._emitted.decisions.append(shared.decision(instruction))
        elif plan.kernel.takes_places and share_addresses([*operands, *results]):
            allocations, places = places_of([*operands, *results])
            plan = replace(plan, kernel=plan.kernel.at_places(places))
            pointers = [*map(self._base, allocations)]
        else:
            pointers = [*map(self._pointer, operands), *map(self._pointer, results)]
        scratch = self._scratch(plan.kernel, plan.grain)
        pointers += scratch
        is_brief = not self._loop_depth and self._plans.is_little_work(plan)
        kernel = self._kernel(instruction, plan.kernel, is_brief=is_brief)
        extent, kind = plan.kernel.extent, plan.decision.verdict
        self._slots.write_back(operands)
        if plan.grain or scratch:
            self._emit_waiting()
            threads = plan.kernel.request.threads
            self._call_timed(kind, [instruction], kernel, extent, plan.grain, pointers, threads)
            self._slots.read_back(results)
        else:
            step = Step(instruction, kind, kernel, extent, len(pointers), plan.estimate_ns)
            self._waiting.append((step, pointers, results))
            self._touched.add(operands, results)

    def _scratch(self, kernel: Kernel, grain: int) -> list[Value]:
        """Scratch memory for one kernel, a slot for each task that may run; kernels follow one another and share it.

        What its calls share, and what it forks with, comes behind it.
        """
        threads = kernel.request.threads
        if not (kernel.scratch_bytes or kernel.shared_bytes or threads > 1):
            return []
        tasks = max(1, -(-kernel.extent // abs(grain))) if grain else threads
        slots = min(tasks, self._num_threads)
        behind = aligned(scratch_area_bytes(kernel.scratch_bytes, slots))
        self._emitted.scratch_bytes = max(self._emitted.scratch_bytes, behind + kernel.shared_bytes)
        start = -(-self._assignment.arena_bytes // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
        area = self._fb.gep(I8, self._fb.parameters[2], start)
        open_slots(self._fb, area, slots)
        shared = self._fb.gep(I8, area, behind)
        if kernel.counters:
            self._fb.memset(shared, 0, kernel.counters * COUNTER_BYTES, align=8)
        return [area, shared, *((self._fb.parameters[3], self._parallel_for()) if threads > 1 else ())]

    def _emit_evaluator_call(self, instruction: HloInstruction, reason: str) -> None:
        self._emit_waiting()
        operands, results = self._arrays(instruction)
        size = sum(piece.size_bytes for piece in (*operands, *results))
        self._emitted.decisions.append(evaluated_decision(instruction, reason, size))
        self._slots.write_back(operands)
        with self._clock.timed(self._fb, "evaluated", instruction):
            status = self._ask_evaluator(instruction)
        self._fail(status)
        self._slots.read_back(results)

    def _fail(self, status: Value) -> None:
        with self._fb.if_(self._fb.icmp("ne", status, 0), likely=False):
            self._fb.ret(status)

    def _ask_evaluator(self, instruction: HloInstruction) -> Value:
        """Calls the evaluator; a failure's status is the number of the call."""
        fb, computed = self._fb, evaluated_module(instruction)
        symbol = evaluator_symbol(computed)
        if symbol not in self._emitted.evaluator_calls:
            self._emitted.evaluator_calls[symbol] = computed.to_string("short_parsable")
        number = self._evaluator_call_numbers.setdefault(symbol, len(self._emitted.evaluator_calls))
        function = self._module.declare(symbol, I32, (PTR,))
        operands, results = self._arrays(instruction)
        status = fb.call(function, self._argument_array([*map(self._pointer, [*operands, *results])]))
        return fb.select(fb.icmp("ne", status, 0), constant(I32, number), constant(I32, 0))

    def _arrays(self, instruction: HloInstruction) -> tuple[list[BufferSlice], list[BufferSlice]]:
        """Where the arrays among the leaves of its operands, and of its result, lie."""
        operands, results = (
            [self._slice(one, index) for one in group for index, leaf in one.shape.leaves() if leaf.is_array]
            for group in (instruction.operands, (instruction,))
        )
        return operands, results

    def _kernel(self, instruction: HloInstruction, kernel: Kernel, *, is_brief: bool = False) -> Function:
        request = kernel.request
        shape = request.in_place, request.unread, request.places, request.threads, is_brief
        key = ("kernel", type(kernel), self._plans.digest(request.body), *shape)

        def build() -> Function:
            self._emitted.kernel_count += 1
            # The prefix keeps an instruction called `fmod` from standing in for the C library's function.
            name = self._module.unique_name(f"kernel.{instruction.name}")
            return self._text.kernel(partial(kernel.emit, self._module, name), is_brief)

        return self._module.define_once(key, build)

    def _emit_waiting(self) -> None:
        """Calls the kernels that wait, side by side if that is worth it."""
        waiting, self._waiting, self._touched = self._waiting, [], TouchedMemory()
        steps = [step for step, _, _ in waiting]
        grain = grain_of(sum(step.estimate_ns for step in steps), len(steps), self._num_threads)
        if grain:
            self._emitted.decisions.append(region_decision(steps, grain))
            pointers = [pointer for _, pointers, _ in waiting for pointer in pointers]
            region, instructions = emit_region(self._module, steps), [step.instruction for step in steps]
            self._call_timed("side by side", instructions, region, len(steps), grain, pointers)
        else:
            for step, pointers, _ in waiting:
                self._call_timed(step.kind, [step.instruction], step.kernel, step.extent, 0, pointers)
        self._slots.read_back(result for _, _, results in waiting for result in results)

    def _call_timed(
        self,
        kind: str,
        instructions: Sequence[HloInstruction],
        kernel: Function,
        extent: int,
        grain: int,
        pointers: Sequence[Value],
        threads: int = 1,
    ) -> None:
        tasks = -(-extent // abs(grain)) if grain else threads
        with self._clock.timed(self._fb, kind, *instructions, threads=min(tasks, self._num_threads)):
            self._call_kernel(kernel, extent, grain, pointers)

    def _call_kernel(self, kernel: Function, extent: int, grain: int, pointers: Sequence[Value]) -> None:
        fb = self._fb
        arguments = self._argument_array(pointers)
        if grain:
            fb.call(self._parallel_for(), fb.parameters[3], kernel, arguments, extent, grain)
        else:
            fb.call(kernel, arguments, 0, extent)

    def _parallel_for(self) -> Function:
        self._emitted.forks = True
        return self._module.declare(PARALLEL_FOR, VOID, (PTR, PTR, PTR, I64, I64))

    def _argument_array(self, pointers: Sequence[Value]) -> Value:
        fb = self._fb
        arguments = fb.alloca(PTR, max(len(pointers), 1), align=8)
        for number, pointer in enumerate(pointers):
            fb.store(pointer, fb.gep(PTR, arguments, number), 8)
        return arguments
