"""Functions that compute results from sums line by line, shared by all programs whose results are computed alike.

Where each array that follows a product has one distance from line to line, and along a line either neighbours or one
element for all, the code says nothing of sizes: whoever calls it says where arrays begin and how far apart lines are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xlalite.backends.codegen.arrays.index import ZERO, Affine, row_major_strides
from xlalite.backends.codegen.arrays.ir_array import ArrayView, lanes_below
from xlalite.backends.codegen.elements.elements import ElementEmitter, ElementSource, always
from xlalite.backends.codegen.elements.rules import ELEMENT_RULES
from xlalite.backends.codegen.kernels.dot.numbers import Numbers
from xlalite.backends.codegen.kernels.plain_body import is_plain_behind_product
from xlalite.backends.codegen.llvm import (
    I8,
    I64,
    PTR,
    VOID,
    Function,
    FunctionBuilder,
    ModuleBuilder,
    Value,
    vector,
    zero,
)
from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.op import Trait
from xlalite.hlo.records import dataclass
from xlalite.passes.fusion.kernel_shape import results_of
from xlalite.passes.simplify.constant_folding import is_uniform


@dataclass(frozen=True, slots=True)
class LineWalk:
    """How an array is walked through with the result, in elements.

    Attributes:
        product: Distance from one product of a batch to the next.
        line: Distance from line to line.
        step: 1 if neighbours on a line are neighbours in the array, 0 if all of a line see one element.
    """

    product: int
    line: int
    step: int


@dataclass(frozen=True, slots=True)
class Walks:
    """How arrays are walked through.

    Attributes:
        read: Each parameter that is read after the product.
        written: All results.
    """

    read: Mapping[HloInstruction, LineWalk]
    written: LineWalk


def walks_of(body: HloComputation, dot: HloInstruction, batch: int, lines: slice, across: slice) -> Walks | None:
    """How parameters that are read after a product, and results, are walked through; None if not line by line.

    Args:
        body: The computation.
        dot: The product in it.
        batch: So many dimensions of the result count products.
        lines: The dimensions that count lines.
        across: Those along a line.
    """
    places = _dimensions_seen(body, dot)
    if places is None:
        return None
    dims = dot.shape.dims

    def walk(own: tuple[int, ...], seen: Sequence[int]) -> LineWalk | None:
        strides = [0] * len(dims)
        for dim, stride in zip(seen, row_major_strides(own), strict=True):
            strides[dim] = stride
        product, line, step = (_joint(strides[part], dims[part]) for part in (slice(batch), lines, across))
        return None if product is None or line is None or step not in (0, 1) else LineWalk(product, line, step)

    walks = ((parameter, walk(parameter.shape.dims, seen)) for parameter, seen in places.items())
    read = {parameter: found for parameter, found in walks if found is not None}
    written = walk(dims, range(len(dims)))
    return Walks(read, written) if written is not None and len(read) == len(places) else None


def _dimensions_seen(body: HloComputation, dot: HloInstruction) -> dict[HloInstruction, tuple[int, ...]] | None:
    """For parameters read after a product, the result's dimension that each of their own is; None if not known."""
    same = tuple(range(dot.shape.rank))
    seen: dict[HloInstruction, tuple[int, ...]] = {}
    waiting = [(result, same) for result in results_of(body)]
    while waiting:
        one, dims = waiting.pop()
        if seen.setdefault(one, dims) != dims or (one is dot and dims != same):
            return None
        if one is dot or one.opcode == "parameter":
            continue
        if one.opcode == "broadcast":
            waiting.append((one.operand(0), tuple(dims[dim] for dim in one.attrs.dimensions)))
        elif one.op.has(Trait.ELEMENTWISE) and one.is_pure and not one.called_computations:
            waiting += ((operand, dims if operand.shape.rank else ()) for operand in one.operands)
        elif one.opcode != "constant" or not is_uniform(one.attrs.literal.value):
            return None
    return {one: dims for one, dims in seen.items() if one.opcode == "parameter"}


def _joint(strides: Sequence[int], dims: Sequence[int]) -> int | None:
    """The one stride of several dimensions that are counted through together; None if there is none."""
    found, size = 0, 1
    for stride, dim in zip(reversed(strides), reversed(dims), strict=True):
        if dim > 1:
            if size == 1:
                found = stride
            if stride != found * size:
                return None
            size *= dim
    return found


def line_finisher(
    module: ModuleBuilder,
    body: HloComputation,
    dot: HloInstruction,
    numbers: Numbers,
    walks: Walks,
    lanes: int,
    across: int,
    *,
    is_masked: bool,
) -> Function:
    """`void finish(ptr args, ptr table, i64 product, i64 row, i64 column, i64 height, i64 width, ptr sums, i64 line)`.

    The table has four numbers for each array, of parameters as `walks` has them, then of results: which argument of the
    kernel its address is, and how many bytes products, lines and columns are apart.

    Args:
        module: Where it is declared.
        body: What is computed.
        dot: The product in it.
        numbers: Its types.
        walks: How arrays are walked through.
        lanes: Lanes of a vector.
        across: The last dimension along a line.
        is_masked: Whether lines may have other widths than whole vectors.
    """
    read, results, kept = walks.read, results_of(body), numbers.kept

    def build(fb: FunctionBuilder) -> None:
        fb.is_as_written = is_plain_behind_product(body)
        args, table, *begin, height, width, sums, sums_line = fb.parameters
        first: list[Value] = []
        steps: list[Value] = []
        for entry in range(len(read) + len(results)):
            argument, *distances = (fb.load(I64, fb.gep(I64, table, 4 * entry + number), 8) for number in range(4))
            array = fb.load(PTR, fb.gep(PTR, args, argument), 8)
            for position, distance in zip(begin, distances, strict=True):
                array = fb.gep(I8, array, fb.mul(position, distance, "nsw"))
            first.append(array)
            steps.append(distances[1])
        with fb.carried_loop(0, height, 1, [sums, *first], nonempty=True) as loop:
            line, *arrays = loop.values
            views = [
                ArrayView(array, one.shape.dtype, (0,), (1,))
                for array, one in zip(arrays, (*read, *results), strict=True)
            ]
            sources: dict[HloInstruction, ElementSource] = {}
            scalar = ElementEmitter(fb, 1, {}, ELEMENT_RULES)
            for (parameter, walk), view in zip(read.items(), views, strict=False):
                if not walk.step:
                    sources[parameter] = always(view.read(scalar.math, (ZERO,)))
            with fb.loop(0, width, lanes, nonempty=True) as start:
                mask = lanes_below(fb, start, width, lanes) if is_masked else None
                place = Affine(start, 1 if lanes > 1 else 0)
                for (parameter, walk), view in zip(read.items(), views, strict=False):
                    if walk.step:
                        sources[parameter] = _reading(view, place)
                wide = vector(kept, lanes) if lanes > 1 else kept
                address = fb.gep(kept, line, start)
                total = (
                    fb.load(wide, address, kept.size_bytes)
                    if mask is None or lanes == 1
                    else fb.masked_load(wide, address, mask, zero(wide), kept.size_bytes)
                )
                sources[dot] = always(numbers.finish(fb, total))
                emitter = ElementEmitter(fb, lanes, sources, ELEMENT_RULES, mask)
                index = tuple(place if dim == across else ZERO for dim in range(dot.shape.rank))
                elements = [emitter.element(result, index) for result in results]
                for view, element in zip(views[len(read) :], elements, strict=True):
                    view.write(emitter.math, (place,), element, mask)
            moved = [fb.gep(I8, array, step) for array, step in zip(arrays, steps, strict=True)]
            loop.yield_(fb.gep(kept, line, sums_line), *moved)
        fb.ret()

    types = (PTR, PTR, *(I64,) * 5, PTR, I64)
    kinds = ("noalias readonly", "noalias readonly", *("",) * 5, "noalias readonly", "")
    return module.shared_function(None, "dot_finish", VOID, types, kinds, build)


def _reading(view: ArrayView, place: Affine) -> ElementSource:
    return lambda emitter, index: view.read(emitter.math, (place,), emitter.mask)
