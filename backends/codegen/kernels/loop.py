"""The loop kernel: every result element on its own. All results have the same sizes."""

from __future__ import annotations

from xlalite.backends.codegen.arrays.index import Index
from xlalite.backends.codegen.arrays.types import Element
from xlalite.backends.codegen.elements.elements import ElementEmitter
from xlalite.backends.codegen.elements.reduction import reduce_elements
from xlalite.backends.codegen.kernels.frame import lane_count, open_kernel, result_dims, results_of
from xlalite.backends.codegen.kernels.kind import KernelKind, KernelRequest
from xlalite.backends.codegen.kernels.walk import walk, walk_extent
from xlalite.backends.codegen.llvm import Function, ModuleBuilder, Value
from xlalite.hlo.ir.instruction import HloInstruction


def _declines(request: KernelRequest) -> str | None:
    results = results_of(request.body)
    if any(r.shape.is_tuple for r in results) and (len(results) > 1 or results[0].opcode != "reduce"):
        return "a result is itself a tuple"
    return None if len({result_dims(result) for result in results}) == 1 else "the results differ in size"


def _extent(request: KernelRequest) -> int:
    return walk_extent(result_dims(results_of(request.body)[0]))


def _emit(module: ModuleBuilder, name: str, request: KernelRequest) -> Function:
    body = request.body
    frame = open_kernel(module, name, body, places=request.places)
    results = results_of(body)

    def visit(index: Index, lanes: int, mask: Value | None) -> None:
        emitter = frame.emitter(lanes, mask)
        # All elements are there before the first is stored: a result may lie in an operand's memory.
        elements = [element for result in results for element in _elements(emitter, result, index)]
        for view, element in zip(frame.outputs, elements, strict=True):
            view.write(emitter.math, index, element, mask)

    dims = result_dims(results[0])
    walk(frame, dims, lane_count(module, body, dims[-1] if dims else 1), visit)
    frame.fb.ret()
    return frame.function


def _elements(emitter: ElementEmitter, result: HloInstruction, index: Index) -> tuple[Element, ...]:
    if result.shape.is_tuple:
        return reduce_elements(emitter, result, index)
    return (emitter.element(result, index),)


LOOP = KernelKind("loop", _declines, _extent, _emit, takes_places=True)
