"""Turns what StableHLO text says into an HLO module.

A function becomes a computation, `main` the entry; several results become a tuple. Regions become computations too. HLO
computations see nothing but their parameters, so values from outside that a region uses travel as loop state or branch
operands; constants are repeated inside.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from xlalite.hlo.building.builder import Builder, Handle
from xlalite.hlo.errors import LiteralError, ParseError, ShapeError
from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.stablehlo.reading.locations import Locations
from xlalite.hlo.stablehlo.reading.syntax import Attribute, Function, Opaque, Operation, Region, Source
from xlalite.hlo.stablehlo.rules.context import ImportRule, OperationContext, elements
from xlalite.hlo.stablehlo.rules.sharding_rules import SHARDING, SHARDING_IN_HLO
from xlalite.hlo.types.limits import ParseLimits
from xlalite.hlo.types.shape import Shape

_REPEATED = frozenset({"constant", "broadcast", "reshape", "convert"})
_REPEATED_DEPTH = 4
_ANNOTATIONS = frozenset({"mhlo.sharding", "mhlo.frontend_attributes", SHARDING})
_NOT_IN_NAMES = re.compile(r"[^\w.]", re.ASCII)


class FunctionTable:
    """What all computations of a module share.

    Attributes:
        module: The module under construction.
        source: Where it was read from, for errors.
        rules: ImportRule of each operation by its name.
        locations: Finds metadata.
        computations: The functions that are finished.
    """

    __slots__ = ("computations", "locations", "module", "rules", "source")

    def __init__(
        self, module: HloModule, source: Source, rules: Mapping[str, ImportRule], locations: Locations
    ) -> None:
        self.module = module
        self.source = source
        self.rules = rules
        self.locations = locations
        self.computations: dict[str, HloComputation] = {}

    def add(self, function: Function, *, entry: bool) -> HloComputation:
        """Translates a function whose callees are there already."""
        if function.is_declaration:
            raise self.source.error_at(function.token, f"@{function.name} is declared but has no body")
        lowering = ComputationLowering(self, Builder(hlo_name(function.name, "function"), self.module))
        for argument in function.body.arguments:
            with lowering.builder.metadata(self.locations.metadata(argument.location)):
                parameter = lowering.builder.parameter(argument.shape, hlo_name(argument.name, "p"))
            _annotate([parameter.instruction], argument.attributes)
            lowering.define(argument.name, parameter, function.token)
        returned = lowering.run(function.body)
        found = tuple(value.shape for value in returned)
        if not _same_types(found, function.result_types):
            raise self.source.error_at(
                function.body.return_token,
                f"@{function.name} returns {_texts(found)}, its type says {_texts(function.result_types)}",
            )
        root = returned[0] if len(returned) == 1 else lowering.builder.tuple(returned)
        computation = lowering.finish(root, entry=entry)
        self.computations[function.name] = computation
        return computation


class ComputationLowering:
    """One computation under construction.

    Attributes:
        table: What all computations share.
        builder: Builder of the computation.
        values: The values by name.
    """

    __slots__ = ("builder", "outer", "table", "values")

    def __init__(self, table: FunctionTable, builder: Builder, outer: ComputationLowering | None = None) -> None:
        """Starts an empty computation; `outer` is the one whose constants it may repeat."""
        self.table = table
        self.builder = builder
        self.outer = outer
        self.values: dict[str, Handle] = {}

    @property
    def limits(self) -> ParseLimits:
        """What the text may ask for."""
        return self.table.source.limits

    def error(self, token: int, message: str) -> ParseError:
        """The error for a place in the text."""
        return self.table.source.error_at(token, message)

    def define(self, name: str, value: Handle, token: int) -> None:
        """Gives a value its name.

        Raises:
            ParseError: The name is taken.
        """
        if name in self.values:
            raise self.error(token, f"there is already a value %{name}")
        self.values[name] = value

    def value(self, name: str, token: int) -> Handle:
        """The value with a name; a constant of the computation outside is repeated.

        Raises:
            ParseError: There is none.
        """
        found = self.values.get(name)
        if found is None:
            found = self.values.get(f"{name}#0") if f"{name}#1" not in self.values else None
        if found is None and name.endswith("#0"):
            found = self.values.get(name[:-2])
        if found is not None:
            return found
        constant = self.outer.constant(name, token) if self.outer is not None else None
        if constant is None:
            if self.outer is not None and self.outer.knows(name):
                raise self.error(
                    token, f"%{name} comes from outside of a function on elements; only constants can be used there"
                )
            raise self.error(token, f"there is no value %{name}")
        self.values[name] = _repeat(self.builder, constant)
        return self.values[name]

    def knows(self, name: str) -> bool:
        """Whether the name means something here or further out."""
        return name in self.values or (self.outer is not None and self.outer.knows(name))

    def constant(self, name: str, token: int) -> HloInstruction | None:
        """The instruction behind a name if it can be repeated elsewhere."""
        if name not in self.values:
            if self.outer is None or self.outer.constant(name, token) is None:
                return None
            self.value(name, token)
        instruction = self.values[name].instruction
        return instruction if _can_be_repeated(instruction) else None

    def run(self, region: Region) -> tuple[Handle, ...]:
        """Translates the operations of a region and gives the values that it returns."""
        for operation in region.operations:
            self._translate(operation)
        return tuple(self.value(name, region.return_token) for name in region.returned)

    def finish(self, root: Handle, *, entry: bool = False) -> HloComputation:
        """Closes the computation with its root."""
        return self.builder.build(root, entry=entry)

    def _translate(self, operation: Operation) -> None:
        rule = self.table.rules.get(operation.name)
        if rule is None:
            raise self.error(operation.token, f"the operation {operation.name} is not supported")
        operands = tuple(self.value(name, operation.token) for name in operation.operands)
        declared = operation.operand_types
        found = tuple(operand.shape for operand in operands)
        if declared is not None and len(declared) == len(found) and not _same_types(found, declared):
            raise self.error(
                operation.token,
                f"{operation.name}: the operands are {_texts(found)}, the types say {_texts(declared)}",
            )
        is_annotated = not _ANNOTATIONS.isdisjoint(operation.attributes)
        before = len(self.builder.computation.instructions) if is_annotated else 0
        with self.builder.metadata(self.table.locations.metadata(operation.location)):
            results = self._apply(rule, OperationContext(operation, operands, self))
        shapes = tuple(result.shape for result in results)
        if not _same_types(shapes, operation.result_types):
            raise self.error(
                operation.token,
                f"{operation.name}: gives {_texts(shapes)}, the types say {_texts(operation.result_types)}",
            )
        for name, value in zip(operation.results, results, strict=bool(operation.results)):
            self.define(name, value, operation.token)
        if is_annotated:
            _annotate(self.builder.computation.instructions[before:], operation.attributes)

    def _apply(self, rule: ImportRule, context: OperationContext) -> Sequence[Handle]:
        try:
            results = rule(context)
        except ParseError:
            raise
        except (ShapeError, LiteralError) as problem:
            raise context.error(str(problem)) from None
        return (results,) if isinstance(results, Handle) else results

    def element_function(self, region: Region, name: str) -> HloComputation:
        """The computation of a region that works on elements."""
        inner = ComputationLowering(self.table, Builder(name, self.builder.module), self)
        for argument in region.arguments:
            inner.define(
                argument.name,
                inner.builder.parameter(argument.shape, hlo_name(argument.name, "p")),
                region.return_token,
            )
        returned = inner.run(region)
        if not returned:
            raise self.error(region.return_token, "the region returns nothing")
        return inner.finish(returned[0] if len(returned) == 1 else inner.builder.tuple(returned))

    def captured(self, regions: Iterable[Region], token: int) -> tuple[str, ...]:
        """Names from outside that regions use, constants left out, in order of their first use."""
        names: dict[str, None] = {}
        for region in regions:
            for name in _free_names(region):
                names.setdefault(name)
        return tuple(name for name in names if self.constant(name, token) is None)

    def block(
        self, region: Region, name: str, state: Sequence[str], captured: Sequence[str], shape: Shape
    ) -> tuple[ComputationLowering, tuple[Handle, ...]]:
        """Runs a region with one parameter, which holds the region's own parameters and the captured values.

        Args:
            region: The region.
            name: Name of the computation.
            state: Names of the region's parameters.
            captured: Names of values from outside.
            shape: Type of the parameter: a tuple of all, or the only one.

        Returns:
            The computation under construction, and what the region returns.
        """
        inner = ComputationLowering(self.table, Builder(name, self.builder.module), self)
        parameter = inner.builder.parameter(shape, "state")
        names = [*state, *captured]
        parts = elements(parameter) if len(names) != 1 else (parameter,)
        for part_name, part in zip(names, parts, strict=True):
            inner.define(part_name, part, region.return_token)
        return inner, inner.run(region)


def hlo_name(name: str, prefix: str) -> str:
    """A name that HLO text can hold, like the one in the text."""
    cleaned = _NOT_IN_NAMES.sub("_", name)
    return cleaned if cleaned[:1].isalpha() or cleaned[:1] == "_" else prefix + cleaned


def _free_names(region: Region) -> dict[str, None]:
    """Names that a region uses and does not define."""
    defined = {argument.name for argument in region.arguments}
    free: dict[str, None] = {}

    def use(name: str) -> None:
        if name not in defined and (not name.endswith("#0") or name[:-2] not in defined):
            free.setdefault(name)

    for operation in region.operations:
        for name in operation.operands:
            use(name)
        for inner in operation.regions:
            for name in _free_names(inner):
                use(name)
        defined.update(operation.results)
    for name in region.returned:
        use(name)
    return free


def _can_be_repeated(instruction: HloInstruction, depth: int = _REPEATED_DEPTH) -> bool:
    return (
        depth > 0
        and instruction.opcode in _REPEATED
        and all(_can_be_repeated(operand, depth - 1) for operand in instruction.operands)
    )


def _repeat(builder: Builder, instruction: HloInstruction) -> Handle:
    """The same constant in another computation."""
    operands = [_repeat(builder, operand).instruction for operand in instruction.operands]
    return Handle(builder, builder.computation.add(instruction.clone(operands)))


def _annotate(instructions: Sequence[HloInstruction], attributes: Mapping[str, Attribute]) -> None:
    """Gives the last instruction the sharding, and all of them the frontend attributes."""
    sharding, shardy = attributes.get("mhlo.sharding"), attributes.get(SHARDING)
    frontend = text_attributes(attributes)
    if instructions and isinstance(sharding, str):
        instructions[-1].sharding = sharding
    if frontend:
        for instruction in instructions:
            instruction.frontend_attributes = frontend
    if instructions and isinstance(shardy, Opaque):
        instructions[-1].frontend_attributes = (*frontend, (SHARDING_IN_HLO, shardy.text))


def text_attributes(attributes: Mapping[str, Attribute]) -> tuple[tuple[str, str], ...]:
    """The frontend attributes among attributes."""
    frontend = attributes.get("mhlo.frontend_attributes")
    pairs = frontend.items() if isinstance(frontend, dict) else ()
    return tuple((key, value) for key, value in pairs if isinstance(value, str))


def _same_types(found: Sequence[Shape], declared: Sequence[Shape]) -> bool:
    return len(found) == len(declared) and all(a.compatible(b) for a, b in zip(found, declared, strict=True))


def _texts(shapes: Sequence[Shape]) -> str:
    return "(" + ", ".join(shape.text() for shape in shapes) + ")"
