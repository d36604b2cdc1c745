"""The concatenate kernel: each operand is written to its part of the result by a loop of its own.

No element asks which operand it comes from, and operands may be computed on the way. The parallel extent is the
outermost result dimension, or blocks of a one-dimensional result.
"""

from __future__ import annotations

from xlalite.backends.codegen.arrays.index import Affine, Index
from xlalite.backends.codegen.kernels.frame import Frame, for_lanes, lane_count, open_kernel
from xlalite.backends.codegen.kernels.kind import KernelKind, KernelRequest
from xlalite.backends.codegen.kernels.walk import BLOCK, walk_extent
from xlalite.backends.codegen.llvm import Function, ModuleBuilder, Value
from xlalite.hlo.ir.instruction import HloInstruction


def _declines(request: KernelRequest) -> str | None:
    if request.body.root.opcode != "concatenate":
        return "the result is no concatenation"
    return "a result lies in the memory of an operand" if request.in_place else None


def _extent(request: KernelRequest) -> int:
    return walk_extent(request.body.root.shape.dims)


def _emit(module: ModuleBuilder, name: str, request: KernelRequest) -> Function:
    frame = open_kernel(module, name, request.body)
    root = request.body.root
    if root.shape.element_count:
        lanes = lane_count(module, request.body, max(piece.shape.dims[-1] for piece in root.operands))
        _ConcatenateKernel(frame, root, lanes).emit()
    frame.fb.ret()
    return frame.function


class _ConcatenateKernel:
    def __init__(self, frame: Frame, root: HloInstruction, lanes: int) -> None:
        self._frame = frame
        self._dimension = root.attrs.dimension
        self._lanes = lanes
        self._pieces: list[tuple[HloInstruction, int]] = []
        offset = 0
        for piece in root.operands:
            if piece.shape.element_count:
                self._pieces.append((piece, offset))
            offset += piece.shape.dims[self._dimension]
        self._rank = root.shape.rank

    def emit(self) -> None:
        """Loops over the dimensions outside the concatenated one, then over the pieces."""
        if self._dimension == 0:
            for piece, offset in self._pieces:
                self._outermost(piece, offset)
            return
        with self._frame.fb.loop(self._frame.begin, self._frame.end) as position:
            self._outer((Affine(position),))

    def _outer(self, index: Index) -> None:
        if len(index) == self._dimension:
            for piece, offset in self._pieces:
                self._piece(piece, offset, index)
            return
        size = self._pieces[0][0].shape.dims[len(index)]
        with self._frame.fb.loop(0, size) as position:
            self._outer((*index, Affine(position)))

    def _outermost(self, piece: HloInstruction, offset: int) -> None:
        """The part of a piece that lies in the frame's part of a result concatenated along its first dimension."""
        fb, size = self._frame.fb, piece.shape.dims[0]
        unit = BLOCK if self._rank == 1 else 1
        first = fb.smax(fb.sub(fb.mul(self._frame.begin, unit, "nsw"), offset), 0)
        last = fb.smin(fb.sub(fb.mul(self._frame.end, unit, "nsw"), offset), size)
        if self._rank > 1:
            with fb.loop(first, last) as position:
                self._piece(piece, offset, (Affine(position),))
            return
        left = fb.smax(fb.sub(last, first), 0)
        full = fb.add(first, fb.sub(left, fb.urem(left, self._lanes)))
        with fb.loop(first, full, self._lanes) as position:
            self._copy(piece, offset, (Affine(position, 1 if self._lanes > 1 else 0),), self._lanes, None)
        with fb.loop(full, last) as position:
            self._copy(piece, offset, (Affine(position),), 1, None)

    def _piece(self, piece: HloInstruction, offset: int, index: Index) -> None:
        """Everything of a piece at the given outer positions."""
        fb, dims = self._frame.fb, piece.shape.dims
        if len(index) < len(dims) - 1:
            with fb.loop(0, dims[len(index)]) as position:
                self._piece(piece, offset, (*index, Affine(position)))
            return
        for_lanes(
            fb, dims[-1], self._lanes, lambda at, lanes, mask: self._copy(piece, offset, (*index, at), lanes, mask)
        )

    def _copy(self, piece: HloInstruction, offset: int, index: Index, lanes: int, mask: Value | None) -> None:
        emitter = self._frame.emitter(lanes, mask)
        place = list(index)
        place[self._dimension] = emitter.math.add_constant(index[self._dimension], offset)
        self._frame.outputs[0].write(emitter.math, tuple(place), emitter.element(piece, index), mask)


CONCATENATE = KernelKind("concatenate", _declines, _extent, _emit)
