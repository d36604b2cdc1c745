"""Copies of blocks: slices, reversals, transpositions, concatenations and arrays in turns whose lines stay as they are.

All that such a kernel does is to call a function that programs share, once for each block: it has the sizes and the
distances of some dimensions and copies lines in whole vectors, the last one beginning in the one before. Long lines are
left to the C library.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from xlalite.backends.codegen.arrays.index import row_major_strides
from xlalite.backends.codegen.arrays.types import representation
from xlalite.backends.codegen.kernels.kernel import Kernel, KernelRequest
from xlalite.backends.codegen.kernels.kernel_entry import KernelEntry, open_kernel
from xlalite.backends.codegen.kernels.line_copy import copy_line, line_lanes
from xlalite.backends.codegen.llvm import I8, I64, PTR, VOID, Function, FunctionBuilder, ModuleBuilder, Value, constant
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ops.comparison import Direction
from xlalite.hlo.records import dataclass
from xlalite.passes.fusion.seams import pieces_of

_RANK = 3
"""Dimensions of the function's loops around lines."""

_LEAST_LINE_BYTES = 32
"""Of shorter lines, the loops around them take longer than the copies."""

_NEAR_BYTES = 16 << 10
"""So much of the result is written by all blocks in turns."""

_MOST_ALONE_BYTES = 256 << 10
"""A result of one dimension is copied by one thread."""

_MOST_BLOCKS = 16
"""Calls take code, too."""


@dataclass(frozen=True, slots=True)
class _Dimension:
    """A dimension of a block: its size, and the distance of neighbours in the source and in the target."""

    size: int
    source: int
    target: int


@dataclass(frozen=True, slots=True)
class Block:
    """A part of the result.

    Attributes:
        parameter: What it is copied from.
        source: Where that begins, in bytes.
        target: Where the block begins, in bytes.
        dimensions: The loops around lines, the outermost one that of the result.
        line: Bytes of a line.
    """

    parameter: HloInstruction
    source: int
    target: int
    dimensions: tuple[_Dimension, ...]
    line: int


@dataclass(frozen=True, slots=True)
class _View:
    """Elements of a parameter: where the first one lies, and how far apart neighbours are in each dimension."""

    parameter: HloInstruction
    origin: int
    strides: tuple[int, ...]


def plan_block_copy(request: KernelRequest) -> BlockCopyKernel | None:
    """The kernel for a result that consists of blocks of operands; None if it does not."""
    root = request.body.root
    if request.in_place or not root.shape.is_array or not root.shape.element_count:
        return None
    # A large result is stored past the caches.
    if 2 * root.shape.size_bytes > request.target.cache_bytes[-1]:
        return None
    outermost = next((dim for dim, size in enumerate(root.shape.dims[:-1]) if size > 1), -1)
    if outermost < 0 and root.shape.size_bytes > _MOST_ALONE_BYTES:
        return None
    if root.opcode == "concatenate" and root.attrs.dimension <= outermost:
        return None
    blocks: list[Block] = []
    for part, start, strides in _parts(root, 0, row_major_strides(root.shape.dims)):
        if not part.shape.element_count:
            continue
        if len(blocks) == _MOST_BLOCKS:
            return None
        view = _view_of(part)
        block = None if view is None else _block(part, view, start, strides, outermost)
        if block is None:
            return None
        blocks.append(block)
    if len({block.dimensions[0].size for block in blocks}) > 1:
        return None
    return BlockCopyKernel(request, tuple(blocks))


def _parts(
    instruction: HloInstruction, start: int, strides: tuple[int, ...]
) -> Iterator[tuple[HloInstruction, int, tuple[int, ...]]]:
    """What an instruction consists of: each part that has elements, where it begins, and how far apart neighbours lie.

    So is an array in turns, whose phases two paddings spread and a selection by the parity of an index takes.
    """
    if instruction.opcode == "concatenate":
        for piece, begin in pieces_of(instruction):
            yield piece, start + begin * strides[instruction.attrs.dimension], strides
    elif (dim := _turning_dimension(instruction)) is not None:
        apart = (*strides[:dim], 2 * strides[dim], *strides[dim + 1 :])
        for number, pad in enumerate(instruction.operands[1:]):
            yield from _parts(pad.operand(0), start + number * strides[dim], apart)
    else:
        yield instruction, start, strides


def _turning_dimension(select: HloInstruction) -> int | None:
    """The dimension along which a selection takes two arrays in turns; None if it does not."""
    if select.opcode != "select" or any(one.opcode != "pad" for one in select.operands[1:]):
        return None
    condition = select.operand(0)
    if condition.opcode != "compare" or condition.attrs.direction is not Direction.EQ:
        return None
    bits, zero = condition.operands
    if bits.opcode != "and" or bits.operand(0).opcode != "iota" or not (_is(bits.operand(1), 1) and _is(zero, 0)):
        return None
    dim: int = bits.operand(0).attrs.iota_dimension
    for first, pad in enumerate(select.operands[1:]):
        amounts = [*pad.attrs.padding]
        low, high, interior = amounts.pop(dim)
        if (low, interior) != (first, 1) or not 0 <= high <= 1 or any(map(any, amounts)):
            return None
    return dim


def _is(instruction: HloInstruction, number: int) -> bool:
    """Whether all elements are a number."""
    if instruction.opcode == "broadcast":
        instruction = instruction.operand(0)
    return (
        instruction.opcode == "constant" and instruction.shape.rank == 0 and instruction.attrs.literal.value == number
    )


def _view_of(instruction: HloInstruction) -> _View | None:
    """Where elements lie in a parameter; None if the instruction computes them, or they are at no fixed distances."""
    dims = instruction.shape.dims
    if instruction.opcode == "parameter":
        return _View(instruction, 0, row_major_strides(dims))
    if instruction.opcode not in ("reshape", "slice", "reverse", "transpose"):
        return None
    operand = instruction.operand(0)
    view = _view_of(operand)
    if view is None:
        return None
    match instruction.opcode:
        case "reshape":
            is_whole = view.origin == 0 and view.strides == row_major_strides(operand.shape.dims)
            return _View(view.parameter, 0, row_major_strides(dims)) if is_whole else None
        case "slice":
            moves = [*zip(view.strides, instruction.attrs.slice, strict=True)]
            origin = sum(stride * first for stride, (first, _, _) in moves)
            return _View(view.parameter, view.origin + origin, tuple(stride * step for stride, (_, _, step) in moves))
        case "reverse":
            turned = instruction.attrs.dimensions
            origin = sum((dims[dim] - 1) * view.strides[dim] for dim in turned)
            strides = tuple(-stride if dim in turned else stride for dim, stride in enumerate(view.strides))
            return _View(view.parameter, view.origin + origin, strides)
        case _:
            order = instruction.attrs.dimensions
            return _View(view.parameter, view.origin, tuple(view.strides[dim] for dim in order))


def _block(part: HloInstruction, view: _View, start: int, strides: Sequence[int], outermost: int) -> Block | None:
    """The block of a result, of such strides, that is a view; None if its lines are short, or its loops too many."""
    element = representation(part.shape.dtype).size_bytes
    if not part.shape.dims:
        return None
    found = [_Dimension(1, 1, 1)]
    for dim, size in reversed([*enumerate(part.shape.dims)]):
        one = _Dimension(size, view.strides[dim], strides[dim])
        inner = found[0]
        if size == 1:
            continue
        # Threads share what the outermost dimension has, so that it is one by itself.
        is_next = one.source == inner.size * inner.source and one.target == inner.size * inner.target
        if is_next and dim != outermost:
            found[0] = _Dimension(size * inner.size, inner.source, inner.target)
        else:
            found.insert(0, one)
    *outer, line = found if outermost >= 0 else (_Dimension(1, 0, 0), *found)
    if not 0 < len(outer) <= _RANK or line.size * element < _LEAST_LINE_BYTES:
        return None
    dimensions = [_Dimension(one.size, one.source * element, one.target * element) for one in outer]
    return Block(view.parameter, view.origin * element, start * element, tuple(dimensions), line.size * element)


@dataclass(frozen=True, slots=True)
class BlockCopyKernel(Kernel):
    """Copies of blocks.

    Attributes:
        blocks: All of the result.
    """

    blocks: tuple[Block, ...]

    @property
    def extent(self) -> int:
        """The outermost dimension."""
        return self.blocks[0].dimensions[0].size

    def emit(self, module: ModuleBuilder, name: str) -> Function:
        """Calls of the function that programs share."""
        read = tuple(dict.fromkeys(block.parameter for block in self.blocks))
        entry = open_kernel(module, name, self.request, read)
        fb = entry.fb
        fb.only_calls()
        # What blocks write to the same lines of memory is written while these are in the nearest cache.
        near = max(1, _NEAR_BYTES * self.extent // self.request.body.root.shape.size_bytes)
        step = near if len(self.blocks) > 1 else self.extent
        with fb.loop(entry.begin, entry.end, step) as first:
            last = fb.smin(fb.add(first, step), entry.end)
            for block in self.blocks:
                self._copy(entry, read, block, first, last)
        fb.ret()
        return entry.function

    def _copy(
        self, entry: KernelEntry, read: Sequence[HloInstruction], block: Block, first: Value, last: Value
    ) -> None:
        """A part of a block, of the outermost dimension."""
        fb, (outermost, *inner) = entry.fb, block.dimensions
        lanes = line_lanes(fb.module.target, block.line)
        shared = fb.module.shared_function(
            ("copy", lanes),
            f"copy_by_{lanes}",
            VOID,
            (PTR, PTR, *(I64,) * (1 + 3 * _RANK)),
            ("noalias readonly", "noalias", *("",) * (1 + 3 * _RANK)),
            partial(_emit, lanes=lanes),
        )
        source = fb.gep(I8, entry.inputs[read.index(block.parameter)].pointer, block.source)
        source = fb.gep(I8, source, fb.mul(first, outermost.source))
        target = fb.gep(I8, entry.outputs[0].pointer, block.target)
        target = fb.gep(I8, target, fb.mul(first, outermost.target))
        loops = [(fb.sub(last, first), outermost.source, outermost.target)]
        loops += [(constant(I64, one.size), one.source, one.target) for one in inner]
        # Loops that are none are the outer ones.
        loops = [(constant(I64, 1), 0, 0)] * (_RANK - len(loops)) + loops
        numbers = [n for size, *steps in loops for n in (size, *(constant(I64, step) for step in steps))]
        fb.call(shared, source, target, constant(I64, block.line), *numbers)


def _emit(fb: FunctionBuilder, lanes: int) -> None:
    """`void copy(ptr source, ptr target, i64 line, i64...)`, size and steps of each loop, outermost first."""
    if lanes > 1:
        fb.is_as_written = True
    else:
        fb.only_calls()
    source, target, line, *numbers = fb.parameters

    def nest(level: int, source: Value, target: Value) -> None:
        if level == _RANK:
            copy_line(fb, lanes, source, target, line)
            return
        size, *steps = numbers[3 * level : 3 * level + 3]
        with fb.carried_loop(0, size, 1, [source, target], nonempty=True) as loop:
            nest(level + 1, *loop.values)
            loop.yield_(
                *(fb.gep(I8, place, step, inbounds=False) for place, step in zip(loop.values, steps, strict=True))
            )

    nest(0, source, target)
    fb.ret()
