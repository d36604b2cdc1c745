"""The update kernel: a dynamic-update-slice whose result lies in its operand's memory writes the update only."""

from __future__ import annotations

from xlalite.backends.codegen.arrays.index import Index
from xlalite.backends.codegen.elements.slicing import clamped_starts
from xlalite.backends.codegen.kernels.frame import lane_count, open_kernel
from xlalite.backends.codegen.kernels.kind import KernelKind, KernelRequest
from xlalite.backends.codegen.kernels.walk import walk, walk_extent
from xlalite.backends.codegen.llvm import Function, ModuleBuilder, Value


def _declines(request: KernelRequest) -> str | None:
    root = request.body.root
    if root.opcode != "dynamic-update-slice":
        return "the result is no dynamic-update-slice"
    target = root.operand(0)
    if target.opcode != "parameter" or (0, target.attrs.number) not in request.in_place:
        return "the result does not lie in the memory of what it updates"
    return None


def _extent(request: KernelRequest) -> int:
    return walk_extent(request.body.root.operand(1).shape.dims)


def _emit(module: ModuleBuilder, name: str, request: KernelRequest) -> Function:
    body = request.body
    frame = open_kernel(module, name, body)
    target, update, *starts = body.root.operands
    offsets = clamped_starts(frame.emitter(1), tuple(starts), target.shape.dims, update.shape.dims)

    def visit(index: Index, lanes: int, mask: Value | None) -> None:
        emitter = frame.emitter(lanes, mask)
        element = emitter.element(update, index)
        place = tuple(emitter.math.add(at, offset) for at, offset in zip(index, offsets, strict=True))
        frame.outputs[0].write(emitter.math, place, element, mask)

    dims = update.shape.dims
    walk(frame, dims, lane_count(module, body, dims[-1] if dims else 1), visit)
    frame.fb.ret()
    return frame.function


UPDATE = KernelKind("update in place", _declines, _extent, _emit)
