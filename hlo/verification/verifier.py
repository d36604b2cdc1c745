"""Checks that a module keeps the rules of the IR; run after every pass. The time is linear in the size of the module.

It verifies, callees before callers:

- Names: HLO text can spell those of the module, its computations and instructions; each stands once in its scope.
- Calls: there is an entry, which nobody calls; what is called belongs to the module; no computation calls itself, not
  through others either; the body of a fusion is called by that fusion alone.
- Computations: the root is one of the instructions; parameters are numbered 0, 1, ... without gaps.
- Dependencies: operands and control predecessors are in the same computation; users, uses and control successors are
  recorded where they are used; nothing depends on itself; a schedule runs everything behind what it depends on.
- Instructions: the attributes are those of the operation; it calls as many computations as it declares; the operation's
  shape rule takes operands, attributes and signatures of callees, and gives the shape that is written.
- Pairs: `X-done` and `X-update` have an `X-start` or what hands it on as operand, which is ended once; one channel
  serves one purpose.
- Layouts, when asked: elementwise operations keep the order of dimensions, what hands on values keeps layouts, the
  entry has those of its signature.
- The module: it runs on one device at least; layouts of the entry are of its shapes; aliases and donors name buffers
  that exist, are as large as what comes to lie there, and are taken once.

What an operation wants of its operands, attributes and called computations is its shape rule's business. It does not
verify:

- that what devices send is received: `hlo/evaluation/spmd.py` finds out by running;
- that groups and pairs of devices fit the number of devices, which may differ from run to run;
- that aliased or donated memory is not read afterwards: buffer assignment sees to that;
- text that is kept verbatim: sharding, metadata, frontend attributes, backend configuration, unknown attributes.

Breaches are reported for the first computation that has any: all that its instructions commit, or the first that leaves
nothing to ask further.
"""

from __future__ import annotations

from xlalite.hlo.errors import VerificationError, XlaliteError
from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.ir.traversal import callers, dependencies
from xlalite.hlo.types.names import is_writable_name
from xlalite.hlo.types.shape import ProgramShape, Shape, ShapeIndex
from xlalite.hlo.verification.instruction_verifier import InstructionVerifier, describe

# The body of a fusion belongs to that fusion alone: it is turned into one kernel.
_OWNS_ITS_BODY = "fusion"
_MOST_REPORTED = 20


def verify(module: HloModule, *, layout_sensitive: bool = False) -> None:
    """Checks a module.

    Args:
        module: What to check.
        layout_sensitive: Whether layouts must agree too, as they must once they are assigned.

    Raises:
        VerificationError: A rule is broken; says which, by what, and where.
    """
    _ModuleVerifier(module, layout_sensitive).check()


class _ModuleVerifier:
    """Checks one module."""

    __slots__ = ("instructions", "layout_sensitive", "module")

    def __init__(self, module: HloModule, layout_sensitive: bool) -> None:
        self.module = module
        self.layout_sensitive = layout_sensitive
        self.instructions = InstructionVerifier(layout_sensitive)

    def check(self) -> None:
        """Checks computations callees first, then what holds for the module as a whole."""
        module = self.module
        self._require(is_writable_name(module.name), f"the name {module.name!r} cannot be written as HLO text")
        try:
            entry = module.entry_computation
            computations = module.computations()
        except XlaliteError as error:
            raise VerificationError(f"verifying module {module.name}: {error}") from error
        for computation in computations:
            self._require(
                computation.module is module, f"computation {computation.name} is called but not in the module"
            )
            self._require(
                self._knows(computation),
                f"computation {computation.name} is not the one that the module knows by this name",
            )
        for computation in computations:
            self._check_computation(computation)
        self._check_callers()
        self._check_config(entry)

    def _knows(self, computation: HloComputation) -> bool:
        try:
            return self.module.find(computation.name) is computation
        except KeyError:
            return False

    def _check_computation(self, computation: HloComputation) -> None:
        where = f"computation {computation.name}"
        self._require(is_writable_name(computation.name), f"{where}: the name cannot be written as HLO text")
        self._require(computation.has_root, f"{where}: there is no root")
        self._require(computation.root in computation, f"{where}: the root %{computation.root.name} belongs elsewhere")
        numbers = [parameter.attrs.number for parameter in computation.parameters]
        self._require(
            numbers == list(range(len(numbers))),
            f"{where}: found parameter numbers {numbers[:20]}, expected 0, 1, ... without gaps",
        )
        self._check_membership(computation)
        try:
            computation.post_order()
        except XlaliteError as error:
            raise VerificationError(f"verifying module {self.module.name}: {error}") from error
        if self.module.config.is_scheduled:
            self._check_schedule(computation)
        found = [
            (i, problem) for i in computation.instructions if (problem := self.instructions.problem(i)) is not None
        ]
        if found:
            raise VerificationError("\n".join(str(self._error(*breach)) for breach in found[:_MOST_REPORTED]))
        self.instructions.finish(computation)

    def _check_membership(self, computation: HloComputation) -> None:
        """Names, homes, operands and users fit together."""
        where = f"computation {computation.name}"
        names: set[str] = set()
        uses: dict[HloInstruction, list[HloInstruction]] = {}
        parameters = 0
        for instruction in computation.instructions:
            name = instruction.name
            # Texts are made when they are needed: this runs for every instruction after every pass.
            if instruction.parent is not computation:
                raise self._fault(f"{where}: it lists %{name}, which belongs elsewhere")
            if name in names:
                raise self._fault(f"{where}: two instructions are called %{name}")
            if not is_writable_name(name):
                raise self._fault(f"{where}: the name {name!r} cannot be written as HLO text")
            names.add(name)
            parameters += instruction.opcode == "parameter"
            for operand in instruction.operands:
                if operand.parent is not computation:
                    raise self._stranger(instruction, "operand", operand)
                if (slots := uses.get(operand)) is None:
                    uses[operand] = [instruction]
                else:
                    slots.append(instruction)
            for predecessor in instruction.control_predecessors:
                if predecessor.parent is not computation:
                    raise self._stranger(instruction, "control predecessor", predecessor)
        self._require(
            parameters == computation.parameter_count,
            f"{where}: found {parameters} parameter instructions, expected {computation.parameter_count}",
        )
        for instruction in computation.instructions:
            found, users = uses.get(instruction, []), instruction.users
            is_known = found == [*users] or set(found) == set(users)
            if not is_known or instruction.use_count != len(found):
                actual = _names(tuple(dict.fromkeys(found)))
                raise self._error(instruction, f"its users are recorded as {_names(users)}, found {actual}")
            for successor in instruction.control_successors:
                if instruction not in successor.control_predecessors:
                    raise self._error(
                        instruction, f"its control successor %{successor.name} does not know it as predecessor"
                    )

    def _stranger(self, instruction: HloInstruction, what: str, other: HloInstruction) -> VerificationError:
        home = other.parent.name if other.parent is not None else "no computation"
        return self._error(instruction, f"its {what} %{other.name} is in {home}")

    def _check_schedule(self, computation: HloComputation) -> None:
        done: set[HloInstruction] = set()
        for instruction in computation.instructions:
            for before in dependencies(instruction):
                if before not in done:
                    raise self._error(instruction, f"the schedule runs it before %{before.name}, which it depends on")
            done.add(instruction)

    def _check_callers(self) -> None:
        for callee, calls in callers(self.module).items():
            if calls and callee.is_entry:
                raise self._error(calls[0], f"it calls the entry computation {callee.name}")
            if len(calls) > 1 and any(call.opcode == _OWNS_ITS_BODY for call in calls):
                raise self._error(
                    calls[1], f"computation {callee.name} is also called by %{calls[0].name}; a fusion owns its body"
                )

    def _check_config(self, entry: HloComputation) -> None:
        config = self.module.config
        self._require(config.replica_count >= 1, f"replica_count is {config.replica_count}, expected at least 1")
        self._require(config.num_partitions >= 1, f"num_partitions is {config.num_partitions}, expected at least 1")
        signature = entry.program_shape
        if config.entry_layout is not None:
            self._check_entry_layout(config.entry_layout, signature)
        outputs: set[ShapeIndex] = set()
        buffers: set[tuple[int, ShapeIndex]] = set()
        for alias in config.input_output_alias:
            where = f"input_output_alias of output {list(alias.output_index)}"
            output = self._subshape(signature.result, alias.output_index, where)
            buffer = (alias.parameter_number, alias.parameter_index)
            source = self._parameter_subshape(signature, *buffer, where)
            # What may be shared is bytes; what must be shared is the array.
            fits = output.compatible(source) or (
                alias.kind == "may-alias"
                and output.is_array
                and source.is_array
                and output.size_bytes == source.size_bytes
            )
            self._require(fits, f"{where}: found {output.text()} for a parameter of {source.text()}")
            self._require(alias.output_index not in outputs, f"{where}: it is given twice")
            self._require(buffer not in buffers, f"{where}: parameter {buffer[0]} {list(buffer[1])} is taken twice")
            outputs.add(alias.output_index)
            buffers.add(buffer)
        for number, index in config.buffer_donors:
            self._parameter_subshape(signature, number, index, "buffer_donor")
            self._require(
                (number, index) not in buffers,
                f"buffer_donor: parameter {number} {list(index)} is given twice or aliased too",
            )
            buffers.add((number, index))

    def _check_entry_layout(self, layout: ProgramShape, signature: ProgramShape) -> None:
        self._require(
            len(layout.parameters) == len(signature.parameters),
            f"entry layout: found {len(layout.parameters)} parameters, expected {len(signature.parameters)}",
        )
        pairs = [*zip(layout.parameters, signature.parameters, strict=True), (layout.result, signature.result)]
        for found, expected in pairs:
            self._require(found.compatible(expected), f"entry layout: found {found.text()}, expected {expected.text()}")
            if self.layout_sensitive:
                self._require(
                    found.with_default_layout() == expected.with_default_layout(),
                    f"entry layout: found {found}, expected {expected}",
                )

    def _parameter_subshape(self, signature: ProgramShape, number: int, index: ShapeIndex, where: str) -> Shape:
        self._require(
            0 <= number < len(signature.parameters),
            f"{where}: there is no parameter {number}, the entry has {len(signature.parameters)}",
        )
        return self._subshape(signature.parameters[number], index, where)

    def _subshape(self, shape: Shape, index: ShapeIndex, where: str) -> Shape:
        try:
            return shape.subshape(index)
        except XlaliteError as error:
            raise VerificationError(f"verifying module {self.module.name}: {where}: {error}") from error

    def _require(self, holds: bool, message: str) -> None:
        if not holds:
            raise self._fault(message)

    def _fault(self, message: str) -> VerificationError:
        return VerificationError(f"verifying module {self.module.name}: {message}")

    def _error(self, instruction: HloInstruction, message: str) -> VerificationError:
        return self._fault(f"{describe(instruction)}: {message}")


def _names(instructions: tuple[HloInstruction, ...]) -> str:
    shown = ", ".join("%" + instruction.name for instruction in instructions[:10])
    return f"[{shown}{', ...' if len(instructions) > 10 else ''}]"
