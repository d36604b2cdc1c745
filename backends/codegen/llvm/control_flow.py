"""Branches, loops and conditionals; the structured forms are context managers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NoReturn

from xlalite.backends.codegen.llvm.emitter import Block, Emitter
from xlalite.backends.codegen.llvm.errors import LLVMBuildError
from xlalite.backends.codegen.llvm.types import I1, I64, PTR, VOID
from xlalite.backends.codegen.llvm.value import Operand, Value, constant


class CarriedLoop:
    """A loop with values that each iteration hands to the next.

    Attributes:
        index: the loop variable (counted loops only).
        values: the carried values at the start of an iteration.
        results: after the loop, the carried values it ended with.
    """

    __slots__ = ("_index", "_results", "next_values", "values")

    def __init__(self, index: Value | None, values: tuple[Value, ...]) -> None:
        self._index = index
        self.values = values
        self.next_values: tuple[Value, ...] | None = None
        self._results: tuple[Value, ...] | None = None

    @property
    def index(self) -> Value:
        """The loop variable of a counted loop."""
        if self._index is None:
            raise LLVMBuildError("this loop has no index")
        return self._index

    @property
    def results(self) -> tuple[Value, ...]:
        """The carried values after the loop."""
        if self._results is None:
            raise LLVMBuildError("a loop's results exist only after its `with` block")
        return self._results

    def yield_(self, *values: Value) -> None:
        """Gives the carried values for the next iteration; the last thing the body does."""
        if self.next_values is not None:
            raise LLVMBuildError("loop: yield_ was called twice")
        if [value.type for value in values] != [value.type for value in self.values]:
            raise LLVMBuildError(f"loop: yielded {values}, carried values are {self.values}")
        self.next_values = values

    def take_next(self) -> tuple[Value, ...]:
        """The yielded values; every carried loop must have yielded."""
        if self.next_values is None:
            if self.values:
                raise LLVMBuildError("loop: the body ended without yield_")
            return ()
        return self.next_values

    def finish(self, results: tuple[Value, ...]) -> None:
        """Sets the results (called by the loop's context manager)."""
        self._results = results


class WhileLoop(CarriedLoop):
    """A loop that tests a condition before each iteration; see `ControlFlow.while_loop`."""

    __slots__ = ("_builder", "exit", "has_condition")

    def __init__(self, builder: ControlFlow, values: tuple[Value, ...]) -> None:
        super().__init__(None, values)
        self._builder = builder
        self.exit = builder.new_block("while_exit")
        self.has_condition = False

    def continue_while(self, condition: Value) -> None:
        """The loop leaves unless `condition` holds, with the values that this iteration began with.

        Most loops say it once, between their condition and their body; it may stand in several places.
        """
        self._builder.guard(condition, self.exit, "while_body")
        self.has_condition = True


class IfElse:
    """A two-way conditional with merged values; see `ControlFlow.if_else`."""

    __slots__ = ("_arms", "_builder", "_join", "_otherwise", "_results", "_then", "_yielded")

    def __init__(self, builder: ControlFlow, condition: Value, likely: bool | None) -> None:
        """Ends the current block with the branch."""
        self._builder = builder
        self._then = builder.new_block("then")
        self._otherwise = builder.new_block("else")
        self._join = builder.new_block("endif")
        self._arms: list[tuple[Block, tuple[Value, ...]]] = []
        self._yielded: tuple[Value, ...] = ()
        self._results: tuple[Value, ...] | None = None
        builder.cond_br(condition, self._then, self._otherwise, likely=likely)

    @contextmanager
    def then(self) -> Iterator[None]:
        """The part for a true condition; write it first."""
        yield from self._arm(self._then)

    @contextmanager
    def otherwise(self) -> Iterator[None]:
        """The part for a false condition; the builder is behind the conditional afterwards."""
        yield from self._arm(self._otherwise)
        self._builder.position_at(self._join)
        self._merge()

    def yield_(self, *values: Value) -> None:
        """Gives this part's values; the last thing a part does."""
        self._yielded = values

    @property
    def results(self) -> tuple[Value, ...]:
        """The merged values, after both parts."""
        if self._results is None:
            raise LLVMBuildError("if_else: results exist only after both parts were written")
        return self._results

    def _arm(self, block: Block) -> Iterator[None]:
        builder = self._builder
        builder.position_at(block)
        self._yielded = ()
        yield
        if not builder.is_terminated:
            self._arms.append((builder.block, self._yielded))
            builder.br(self._join)

    def _merge(self) -> None:
        if not self._arms:
            self._builder.unreachable()
            self._results = ()
            return
        first = self._arms[0][1]
        for _, values in self._arms:
            if [value.type for value in values] != [value.type for value in first]:
                raise LLVMBuildError(f"if_else: the parts yield different types: {first} and {values}")
        self._results = tuple(
            self._builder.phi(value.type, [(values[position], block) for block, values in self._arms])
            for position, value in enumerate(first)
        )


class ControlFlow(Emitter):
    """Terminators and structured control flow."""

    # Terminators

    def br(self, target: Block) -> None:
        """Jumps."""
        self._terminate(f"  br label %{target.label}")

    def cond_br(self, condition: Value, if_true: Block, if_false: Block, *, likely: bool | None = None) -> None:
        """Jumps to one of two blocks; `likely` tells which one is usual (True: the first)."""
        if condition.type is not I1:
            self._mismatch("cond_br", condition)
        tail = ""
        if likely is not None:
            weights = "i32 2000, i32 1" if likely else "i32 1, i32 2000"
            profile = self.module.metadata(f'!{{!"branch_weights", {weights}}}')
            tail = f", !prof {profile}"
        self._terminate(f"  br i1 {condition.text}, label %{if_true.label}, label %{if_false.label}{tail}")

    def guard(self, condition: Value, otherwise: Block, stem: str = "passed") -> None:
        """Jumps to `otherwise` unless the condition holds; what is written next is for when it does."""
        passed = self.new_block(stem)
        self.cond_br(condition, passed, otherwise)
        self.position_at(passed)

    def switch(self, value: Value, default: Block, cases: Mapping[int, Block]) -> None:
        """Jumps by the value of an integer."""
        if not value.type.is_integer or value.type.is_vector:
            self._mismatch("switch", value)
        arms = " ".join(f"{constant(value.type, number)!r}, label %{block.label}" for number, block in cases.items())
        self._terminate(f"  switch {value!r}, label %{default.label} [ {arms} ]")

    def ret(self, value: Operand | None = None) -> None:
        """Returns from the function; a number becomes a constant of the return type."""
        wanted = self.function.return_type
        if value is None:
            if wanted is not VOID:
                raise LLVMBuildError(f"ret: function {self.function.name} returns {wanted}")
            self._terminate("  ret void")
            return
        result = value if isinstance(value, Value) else constant(wanted, value)
        if result.type is not wanted:
            raise LLVMBuildError(f"ret: function {self.function.name} returns {wanted}, not {result!r}")
        self._terminate(f"  ret {result!r}")

    def unreachable(self) -> None:
        """Says that control never comes here."""
        self._terminate("  unreachable")

    # Structured forms

    @contextmanager
    def if_(self, condition: Value, *, likely: bool | None = None) -> Iterator[None]:
        """`with fb.if_(condition): ...`; the part may end with its own `ret` or branch."""
        then, join = self.new_block("then"), self.new_block("endif")
        self.cond_br(condition, then, join, likely=likely)
        self.position_at(then)
        yield
        if not self.is_terminated:
            self.br(join)
        self.position_at(join)

    def if_else(self, condition: Value, *, likely: bool | None = None) -> IfElse:
        """A conditional with two parts and merged values.

        ```
        branch = fb.if_else(condition)
        with branch.then():
            branch.yield_(a)
        with branch.otherwise():
            branch.yield_(b)
        (merged,) = branch.results
        ```
        """
        return IfElse(self, condition, likely)

    @contextmanager
    def loop(self, start: Operand, stop: Operand, step: Operand = 1, *, nonempty: bool = False) -> Iterator[Value]:
        """`with fb.loop(start, stop, step) as i: ...` for signed `i` from start while below stop.

        The bounds are i64 unless one of them is a value of another integer type; the step is positive.

        Args:
            start: first value.
            stop: bound, exclusive.
            step: increment.
            nonempty: the caller knows that start < stop, so that the test before the loop is left out.
        """
        with self.carried_loop(start, stop, step, (), nonempty=nonempty) as loop:
            yield loop.index

    @contextmanager
    def carried_loop(
        self,
        start: Operand,
        stop: Operand,
        step: Operand,
        initial: Sequence[Value],
        *,
        nonempty: bool = False,
    ) -> Iterator[CarriedLoop]:
        """`loop` with carried values.

        ```
        with fb.carried_loop(0, n, 1, [zero]) as loop:
            loop.yield_(fb.fadd(loop.values[0], element(loop.index)))
        (total,) = loop.results
        ```
        """
        first, bound, increment = self._loop_bounds(start, stop, step)
        self.has_loops = True
        self._open_scope()
        before = self.block
        body, exit_ = self.new_block("loop"), self.new_block("loop_exit")
        if isinstance(start, int) and isinstance(stop, int):
            nonempty = nonempty or start < stop
        if nonempty:
            self.br(body)
        else:
            entered = self._emit(I1, f"icmp slt {first!r}, {bound.text}")
            self.cond_br(entered, body, exit_)
        self.position_at(body)
        index = self.phi(first.type, [(first, before)])
        phis = [self.phi(value.type, [(value, before)]) for value in initial]
        loop = CarriedLoop(index, tuple(phis))
        yield loop
        following = loop.take_next()
        self._close_scope()
        latch = self.block
        next_index = self._emit(first.type, f"add nsw {index!r}, {increment.text}")
        next_index, *carried = self._unanalysed((next_index, *following))
        again = self._emit(I1, f"icmp slt {next_index!r}, {bound.text}")
        index.add_incoming(next_index, latch)
        for phi, value in zip(phis, carried, strict=True):
            phi.add_incoming(value, latch)
        self.cond_br(again, body, exit_)
        self.position_at(exit_)
        if not nonempty:
            ends = zip(carried, initial, strict=True)
            carried = [self.phi(value.type, [(value, latch), (start, before)]) for value, start in ends]
        loop.finish(tuple(carried))

    @contextmanager
    def while_loop(self, initial: Sequence[Value]) -> Iterator[WhileLoop]:
        """A loop that ends by `continue_while`, as a rule before each iteration.

        ```
        with fb.while_loop([x]) as loop:
            loop.continue_while(condition(loop.values))
            loop.yield_(fb.add(loop.values[0], 1))
        (last,) = loop.results
        ```
        """
        self.has_loops = True
        before = self.block
        header = self.new_block("while")
        self.br(header)
        self.position_at(header)
        phis = [self.phi(value.type, [(value, before)]) for value in initial]
        loop = WhileLoop(self, tuple(phis))
        yield loop
        if not loop.has_condition:
            raise LLVMBuildError("while_loop: the condition part ended without continue_while")
        for phi, value in zip(phis, self._unanalysed(loop.take_next()), strict=True):
            phi.add_incoming(value, self.block)
        self.br(header)
        self.position_at(loop.exit)
        loop.finish(loop.values)

    def _loop_bounds(self, *operands: Operand) -> tuple[Value, Value, Value]:
        type_ = next((operand.type for operand in operands if isinstance(operand, Value)), I64)
        values = [operand if isinstance(operand, Value) else constant(type_, operand) for operand in operands]
        if not type_.is_integer or type_.is_vector or any(value.type is not type_ for value in values):
            self._refuse_bounds(values)
        first, bound, increment = values
        return first, bound, increment

    def _refuse_bounds(self, values: Sequence[Value]) -> NoReturn:
        self._mismatch("loop bounds", *values)

    def _unanalysed(self, values: Sequence[Value]) -> list[Value]:
        """The same values, of whose places and numbers LLVM cannot tell how they move from one iteration to the next.

        Loop strength reduction, a fifth of code generation, then finds nothing to do. It gains nothing where places are
        sums, which the machine adds up as it addresses them, or products beside other work; and LLVM can switch it off
        for a whole process only.
        """
        pure = self.module.attribute_reference(("nounwind", "memory(none)"))
        return [
            value
            if self.is_strength_reduced or value.type not in (PTR, I64)
            else self._emit(value.type, f'call {value.type.text} asm "", "=r,0"({value!r}){pure}')
            for value in values
        ]
