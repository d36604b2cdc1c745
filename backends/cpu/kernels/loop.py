"""The loop kernel: every result element on its own. All results have the same sizes."""

from __future__ import annotations

from xlalite.backends.cpu.index import Index
from xlalite.backends.cpu.kernels.frame import lane_count, open_kernel, results_of
from xlalite.backends.cpu.kernels.kind import KernelKind, KernelRequest
from xlalite.backends.cpu.kernels.walk import walk, walk_extent
from xlalite.backends.cpu.llvm import Function, ModuleBuilder, Value


def _declines(request: KernelRequest) -> str | None:
    results = results_of(request.body)
    if any(result.shape.is_tuple for result in results):
        return "a result is itself a tuple"
    return None if len({result.shape.dims for result in results}) == 1 else "the results differ in size"


def _extent(request: KernelRequest) -> int:
    return walk_extent(results_of(request.body)[0].shape.dims)


def _emit(module: ModuleBuilder, name: str, request: KernelRequest) -> Function:
    body = request.body
    frame = open_kernel(module, name, body)
    results = results_of(body)

    def visit(index: Index, lanes: int, mask: Value | None) -> None:
        emitter = frame.emitter(lanes, mask)
        # All elements are there before the first is stored: a result may lie in an operand's memory.
        elements = [emitter.element(result, index) for result in results]
        for view, element in zip(frame.outputs, elements, strict=True):
            view.write(emitter.math, index, element, mask)

    dims = results[0].shape.dims
    walk(frame, dims, lane_count(module, body, dims[-1] if dims else 1), visit)
    frame.fb.ret()
    return frame.function


LOOP = KernelKind("loop", _declines, _extent, _emit)
