"""What all kernels begin with: the native signature, and access to operands and results.

A kernel is `void kernel(ptr args, i64 begin, i64 end)`: `args` holds the addresses of the body's parameters by number,
then of its results, unless the request says in which places they lie; [begin, end) is the part of the kernel's parallel
extent to do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from xlalite.backends.codegen.arrays.index import row_major_strides
from xlalite.backends.codegen.arrays.ir_array import ArrayView
from xlalite.backends.codegen.arrays.types import representation
from xlalite.backends.codegen.elements.elements import ElementEmitter, ElementSource, computes_f16
from xlalite.backends.codegen.elements.rules import ELEMENT_RULES
from xlalite.backends.codegen.kernels.ahead import NOT_AHEAD, Ahead
from xlalite.backends.codegen.kernels.kernel import KernelRequest
from xlalite.backends.codegen.kernels.scalars import Scalars, TableScalars, table_of
from xlalite.backends.codegen.llvm import (
    I8,
    I64,
    PTR,
    VOID,
    Function,
    FunctionBuilder,
    ModuleBuilder,
    TargetInfo,
    Value,
)
from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.op import Trait
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.shape import Shape

TYPES, KINDS = (PTR, I64, I64), ("noalias readonly", "", "")
"""The parameters of a kernel, and what LLVM may rely on."""


@dataclass(frozen=True, slots=True)
class KernelEntry:
    """A kernel function under construction.

    Attributes:
        fb: Builder of the function, inside its entry block.
        begin: First unit of the parallel extent to do.
        end: One past the last.
        inputs: Views of the body's parameters, or of those that are read.
        outputs: Views of the results, flattened.
        sources: The same parameters as element sources.
        numbers: How sizes become registers.
    """

    fb: FunctionBuilder
    begin: Value
    end: Value
    inputs: tuple[ArrayView, ...]
    outputs: tuple[ArrayView, ...]
    sources: dict[HloInstruction, ElementSource]
    numbers: Scalars

    @property
    def function(self) -> Function:
        """The kernel."""
        return self.fb.function

    def emitter(
        self, lanes: int, mask: Value | None = None, known: Mapping[HloInstruction, ElementSource] | None = None
    ) -> ElementEmitter:
        """An element emitter for the body at a lane count; `known` are sources besides the parameters."""
        return ElementEmitter(self.fb, lanes, {**self.sources, **(known or {})}, ELEMENT_RULES, mask)

    def close(self) -> None:
        """Ends the function; what was stored past the caches is seen before whatever its thread stores next."""
        if any(view.streams for view in self.outputs) and self.fb.module.target.triple.startswith("x86_64"):
            self.fb.intrinsic("x86.sse.sfence", VOID, (), ())
        self.fb.ret()


def open_kernel(
    module: ModuleBuilder,
    name: str,
    request: KernelRequest,
    reads: Sequence[HloInstruction] | None = None,
    *,
    ahead: Ahead = NOT_AHEAD,
) -> KernelEntry:
    """Starts the function of a kernel and loads the addresses of its arrays.

    Args:
        module: Where the function is added.
        name: Its symbol.
        request: What the kernel computes.
        reads: The parameters whose addresses are needed, if not all.
        ahead: What is asked for before it is read or written.
    """
    fb = module.function(name, VOID, TYPES, parameter_attributes=KINDS, linkage="hidden")
    return enter_kernel(fb, request, reads, ahead=ahead)


def enter_kernel(
    fb: FunctionBuilder,
    request: KernelRequest,
    reads: Sequence[HloInstruction] | None = None,
    *,
    ahead: Ahead = NOT_AHEAD,
    numbers: Scalars | None = None,
) -> KernelEntry:
    """Loads the addresses of a kernel's arrays in a function whose first parameters are those of a kernel."""
    arguments, begin, end = fb.parameters[:3]
    numbers = numbers or Scalars(fb)
    body, places = request.body, request.places
    bases = {number: fb.held(PTR, arguments, number) for number in dict.fromkeys(p.argument for p in places)}

    def address(number: int) -> Value:
        if not places:
            return fb.load(PTR, fb.gep(PTR, arguments, number), 8)
        place = places[number]
        base = bases[place.argument]
        return fb.gep(I8, base, place.offset) if place.offset else base

    def view(number: int, shape: Shape, ahead: int, *, streams: bool = False) -> ArrayView:
        pointer, ahead = address(number), 0 if streams else ahead
        known = enumerate(row_major_strides(shape.dims))
        strides = [numbers.held(stride, (number, dim)) if stride > 1 else stride for dim, stride in known]
        return ArrayView(pointer, shape.dtype, shape.dims, tuple(strides), streams=streams, ahead=ahead)

    read = body.parameters if reads is None else reads
    leaves = [leaf for _, leaf in body.root.shape.leaves()]
    inputs = [view(one.attrs.number, one.shape, ahead.of_parameter(one.shape, request.target)) for one in read]
    outputs = [
        view(len(body.parameters) + number, leaf, ahead.of_result(leaf), streams=number in request.streamed)
        for number, leaf in enumerate(leaves)
    ]
    sources: dict[HloInstruction, ElementSource] = {
        parameter: read_from(view) for parameter, view in zip(read, inputs, strict=True)
    }
    return KernelEntry(fb, begin, end, tuple(inputs), tuple(outputs), sources, numbers)


def shared_kernel(
    module: ModuleBuilder, name: str, request: KernelRequest, stem: str, write: Callable[[KernelEntry], None]
) -> Function:
    """A kernel whose loops stand in a function that programs share, which is given the sizes.

    Args:
        module: Where the kernel is added.
        name: Its symbol.
        request: What it computes.
        stem: Beginning of the name of that function.
        write: Writes the loops.
    """
    fb = module.function(name, VOID, TYPES, parameter_attributes=KINDS, linkage="hidden")
    numbers: list[int] = []

    def build(inner: FunctionBuilder) -> None:
        inner.is_as_written = True
        table = TableScalars(inner, inner.parameters[3])
        with inner.contraction(fb.contract):
            entry = enter_kernel(inner, request, numbers=table)
            write(entry)
            entry.close()
        numbers.extend(table.numbers)

    types, kinds = (*TYPES, PTR), (*KINDS, "noalias readonly")
    function = module.shared_function(None, stem, VOID, types, kinds, build)
    fb.only_calls()
    fb.call(function, *fb.parameters, table_of(module, numbers))
    fb.ret()
    return fb.function


def read_from(view: ArrayView) -> ElementSource:
    """The elements of an array in memory as a source."""
    return lambda emitter, index: view.read(emitter.math, index, emitter.mask, emitter.rows)


def lane_count(module: ModuleBuilder, body: HloComputation, extent: int) -> int:
    """Lanes for a vector loop over `extent` elements: one register of the widest type of an array of the body.

    Scalars, such as the places of slices, are one lane wherever they are the same in all. What is only moved stays as
    it lies in memory, and halves that the machine computes with. Short extents take the next power of two, so that
    little of a register is masked off.
    """
    arrays = [
        (instruction, representation(shape.dtype))
        for instruction in body.instructions
        for _, shape in instruction.shape.leaves()
        if shape.dtype.is_array and shape.rank
    ]
    stay = all(_stays(one, module.target) for one, _ in arrays)
    widest = max((held.memory.bits if stay else held.register.bits for _, held in arrays), default=32)
    widest = max(widest, 8)
    lanes = module.target.lanes(widest)
    return min(lanes, 1 << max(extent - 1, 0).bit_length()) if extent < lanes else lanes


def _stays(instruction: HloInstruction, target: TargetInfo) -> bool:
    is_moved = instruction.op.has(Trait.DATA_MOVEMENT) or instruction.opcode in ("parameter", "tuple")
    return is_moved or computes_f16(target, instruction)
