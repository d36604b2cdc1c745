"""From an HLO module to the operations of StableHLO, in the records that the readers of text and bytecode give.

A value that is a tuple has no counterpart: its elements travel by themselves, so a function has a parameter and a
result for each of them, a loop a state of as many values. Fusions are written out where they stand, branches use what
lies outside of them. Layouts, schedules and control edges say nothing that StableHLO could hold.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias, Union

from xlalite.hlo.errors import LoweringError
from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.instruction import HloInstruction, Metadata
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.records import dataclass
from xlalite.hlo.stablehlo.reading.attribute_reader import ELEMENT_NAMES
from xlalite.hlo.stablehlo.reading.syntax import (
    Argument,
    Attribute,
    Dense,
    Function,
    Location,
    Operation,
    Program,
    Region,
    Symbol,
)
from xlalite.hlo.types.shape import Shape

_NOT_IN_SYMBOLS = re.compile(r"[^\w.]", re.ASCII)


@dataclass(frozen=True, slots=True)
class Leaf:
    """A value that is no tuple."""

    name: str
    shape: Shape


Tree: TypeAlias = Union[Leaf, "tuple[Tree, ...]"]
NOTHING: Tree = ()
"""What stands for the context of an operation under way: only its other half knows it, and has none here."""
Attributes: TypeAlias = dict[str, Attribute]


def leaves(tree: Tree) -> tuple[Leaf, ...]:
    """The values of a tree, depth first."""
    return (tree,) if isinstance(tree, Leaf) else tuple(leaf for part in tree for leaf in leaves(part))


def grouped(values: Iterator[Leaf], shape: Shape) -> Tree:
    """Values in the form of a shape."""
    return tuple(grouped(values, element) for element in shape.elements) if shape.is_tuple else next(values)


def array_leaf(tree: Tree) -> Leaf:
    """The value of an operand that the shape rules keep from being a tuple."""
    assert isinstance(tree, Leaf), "the shape rule lets no tuple through"
    return tree


def program_of(module: HloModule, rules: Mapping[str, ExportRule]) -> Program:
    """The functions that mean what a module means; its entry is `main`.

    Raises:
        LoweringError: StableHLO cannot say it; names the instruction.
    """
    attributes: Attributes = {}
    if module.config.replica_count != 1 or module.config.num_partitions != 1:
        attributes["mhlo.num_partitions"] = module.config.num_partitions
        attributes["mhlo.num_replicas"] = module.config.replica_count
    if module.config.frontend_attributes:
        attributes["mhlo.frontend_attributes"] = dict(module.config.frontend_attributes)
    program = Program(_NOT_IN_SYMBOLS.sub("_", module.name), attributes, {}, {})
    ModuleExport(module, program, rules).entry()
    return program


class ModuleExport:
    """What all functions share.

    Attributes:
        module: The module.
        program: Its functions so far.
        rules: The rule of each opcode.
    """

    __slots__ = ("_names", "module", "program", "rules")

    def __init__(self, module: HloModule, program: Program, rules: Mapping[str, ExportRule]) -> None:
        self.module = module
        self.program = program
        self.rules = rules
        self._names: dict[HloComputation, str] = {}

    def entry(self) -> None:
        """Writes the entry, with what is known of the memory of its parameters."""
        computation, config = self.module.entry_computation, self.module.config
        function = self._function(computation, "main")
        places = {
            (parameter.attrs.number, index): place
            for place, (parameter, index) in enumerate(
                (parameter, index) for parameter in computation.parameters for index, _ in parameter.shape.leaves()
            )
        }
        outputs = {index: place for place, (index, _) in enumerate(computation.root.shape.leaves())}
        arguments = function.body.arguments
        for alias in config.input_output_alias:
            place = places.get((alias.parameter_number, alias.parameter_index))
            if place is not None and alias.output_index in outputs:
                arguments[place].attributes["tf.aliasing_output"] = outputs[alias.output_index]
        for donor in config.buffer_donors:
            if donor in places:
                arguments[places[donor]].attributes["jax.buffer_donor"] = True

    def symbol(self, computation: HloComputation) -> Symbol:
        """The function of a computation that is called, which is written when it is first asked for."""
        if computation not in self._names:
            taken = {"main", *self._names.values()}
            wanted = _NOT_IN_SYMBOLS.sub("_", computation.name)
            spelled = (f"{wanted}_{number}" if number else wanted for number in itertools.count())
            name = self._names[computation] = next(name for name in spelled if name not in taken)
            self._function(computation, name)
        return Symbol(self._names[computation])

    def _function(self, computation: HloComputation, name: str) -> Function:
        block = BlockExport(self, itertools.count())
        arguments: list[Argument] = []
        trees: list[Tree] = []
        for parameter in computation.parameters:
            parts = list(parameter.shape.leaves())
            for index, shape in parts:
                spelled = ".".join((parameter.name, *map(str, index)))
                argument = Argument(spelled, checked(shape, parameter), {}, _location(parameter.metadata))
                if len(parts) == 1:
                    argument.attributes.update(_annotations(parameter))
                arguments.append(argument)
            found = (Leaf(argument.name, argument.shape) for argument in arguments[len(arguments) - len(parts) :])
            trees.append(grouped(found, parameter.shape))
        returned = leaves(block.inline(computation, trees))
        body = Region(arguments, block.operations, tuple(leaf.name for leaf in returned))
        function = Function(name, 0, body, tuple(leaf.shape for leaf in returned))
        self.program.functions[name] = function
        return function


class BlockExport:
    """A block under construction.

    Attributes:
        export: What all functions share.
        operations: The operations so far.
        location: Where those that are written now came from.
    """

    __slots__ = ("_numbers", "export", "location", "operations")

    def __init__(self, export: ModuleExport, numbers: Iterator[int]) -> None:
        """Starts an empty block; its values are named by numbers that the whole function shares."""
        self.export = export
        self.operations: list[Operation] = []
        self.location: Location | None = None
        self._numbers = numbers

    def emit(
        self,
        name: str,
        operands: Sequence[Leaf],
        results: Sequence[Shape],
        attributes: Attributes | None = None,
        regions: Sequence[Region] = (),
    ) -> tuple[Leaf, ...]:
        """Appends an operation; its name stands without a dialect if that is StableHLO's."""
        values = tuple(Leaf(str(next(self._numbers)), shape) for shape in results)
        operation = Operation(
            name if "." in name else f"stablehlo.{name}",
            0,
            results=tuple(value.name for value in values),
            operands=tuple(operand.name for operand in operands),
            attributes=attributes or {},
            regions=list(regions),
            operand_types=tuple(operand.shape for operand in operands),
            result_types=tuple(results),
            location=self.location,
        )
        self.operations.append(operation)
        return values

    def one(self, name: str, operands: Sequence[Leaf], result: Shape, attributes: Attributes | None = None) -> Leaf:
        """Appends an operation with one result."""
        return self.emit(name, operands, [result], attributes)[0]

    def inline(self, computation: HloComputation, arguments: Sequence[Tree]) -> Tree:
        """Appends what a computation does with its parameters' values, dead code left out, and gives its result."""
        values: dict[HloInstruction, Tree] = {}
        for instruction in computation.instructions:
            if instruction.opcode == "parameter":
                values[instruction] = arguments[instruction.attrs.number]
            elif instruction.user_count or instruction.is_root or instruction.has_side_effect:
                values[instruction] = self._instruction(instruction, values)
        return self.known(values[computation.root], computation.root.shape)

    def known(self, tree: Tree, shape: Shape) -> Tree:
        """A value of a shape, in which zeros take the place of contexts of operations under way."""
        if isinstance(tree, Leaf):
            return tree
        if shape.is_tuple:
            parts = tree if len(tree) == len(shape.elements) else (NOTHING,) * len(shape.elements)
            return tuple(self.known(part, element) for part, element in zip(parts, shape.elements, strict=True))
        if shape.is_token:
            return self.one("create_token", (), shape)
        zeros = Dense(bytes(shape.element_count * shape.dtype.size_bytes), shape.without_layout(), 0)
        return self.one("constant", (), shape.without_layout(), {"value": zeros})

    def region(self, computation: HloComputation) -> Region:
        """A computation as a region that has its parameters."""
        inner = BlockExport(self.export, self._numbers)
        trees = []
        for parameter in computation.parameters:
            parts = iter([Leaf(str(next(self._numbers)), checked(s, parameter)) for _, s in parameter.shape.leaves()])
            trees.append(grouped(parts, parameter.shape))
        return inner.closed(computation, trees, [leaf for tree in trees for leaf in leaves(tree)])

    def branch(self, computation: HloComputation, arguments: Sequence[Tree]) -> Region:
        """A computation as a region without parameters: it uses values from outside."""
        return BlockExport(self.export, self._numbers).closed(computation, arguments, ())

    def closed(self, computation: HloComputation, trees: Sequence[Tree], arguments: Sequence[Leaf]) -> Region:
        """The region of an empty block that does what a computation does."""
        returned = leaves(self.inline(computation, trees))
        parameters = [Argument(leaf.name, leaf.shape) for leaf in arguments]
        return Region(parameters, self.operations, tuple(leaf.name for leaf in returned))

    def _instruction(self, instruction: HloInstruction, values: Mapping[HloInstruction, Tree]) -> Tree:
        rule = self.export.rules.get(instruction.opcode)
        context = ExportContext(self, instruction, tuple(values[operand] for operand in instruction.operands))
        if rule is None:
            raise context.error("StableHLO has no such operation")
        for _, shape in instruction.shape.leaves():
            checked(shape, instruction)
        first = len(self.operations)
        self.location = _location(instruction.metadata)
        result = rule(context)
        if len(self.operations) > first:
            annotations = _annotations(instruction)
            if self.operations[-1].name.endswith(".composite"):
                annotations.pop("mhlo.frontend_attributes", None)
            self.operations[-1].attributes.update(annotations)
        return result


def _annotations(instruction: HloInstruction) -> dict[str, Attribute]:
    """What an instruction carries that does not change what it gives."""
    found: dict[str, Attribute] = {}
    if instruction.sharding:
        found["mhlo.sharding"] = instruction.sharding
    if instruction.frontend_attributes:
        found["mhlo.frontend_attributes"] = dict(instruction.frontend_attributes)
    return found


@dataclass(frozen=True, slots=True)
class ExportContext:
    """One instruction under translation.

    Attributes:
        block: Where it is written.
        instruction: The instruction.
        operands: Its operands' values.
    """

    block: BlockExport
    instruction: HloInstruction
    operands: tuple[Tree, ...]

    @property
    def arrays(self) -> tuple[Leaf, ...]:
        """All values of the operands, tuples in their parts."""
        return tuple(leaf for operand in self.operands for leaf in leaves(operand))

    @property
    def called(self) -> tuple[HloComputation, ...]:
        """The computations that it calls."""
        return self.instruction.called_computations

    def error(self, message: str) -> LoweringError:
        """The error that names the instruction."""
        return refusal(self.instruction, message)

    def op(
        self,
        name: str,
        attributes: Attributes | None = None,
        operands: Sequence[Leaf] | None = None,
        shape: Shape | None = None,
        regions: Sequence[Region] | None = None,
    ) -> Tree:
        """An operation with the instruction's operands, shape, and computations as regions, if no others are given."""
        wanted = self.instruction.shape if shape is None else shape
        results = [leaf.without_layout() for _, leaf in wanted.leaves()]
        if regions is None:
            regions = [self.block.region(computation) for computation in self.called]
        found = self.block.emit(name, self.arrays if operands is None else operands, results, attributes, regions)
        return grouped(iter(found), wanted)


def refusal(instruction: HloInstruction, message: str) -> LoweringError:
    """The error for what StableHLO cannot say."""
    return LoweringError(f"StableHLO: {instruction.opcode}: {message} (%{instruction.name})")


def checked(shape: Shape, instruction: HloInstruction) -> Shape:
    """The type of a value that is no tuple, without its layout.

    Raises:
        LoweringError: StableHLO has no such type.
    """
    if not shape.is_token and shape.dtype not in ELEMENT_NAMES:
        raise refusal(instruction, f"values of type {shape.text()} cannot be said")
    if shape.is_dynamic:
        raise refusal(instruction, f"{shape.text()} has a size that is not known")
    return shape.without_layout()


def _location(metadata: Metadata) -> Location | None:
    if not metadata.op_name and not metadata.source_file:
        return None
    return Location(metadata.op_name, metadata.source_file, metadata.source_line)


ExportRule: TypeAlias = Callable[[ExportContext], Tree]
