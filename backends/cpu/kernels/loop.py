"""The loop kernel: every result element on its own, vectors along the minor dimension.

All results have the same sizes. The parallel extent is the outermost dimension, or blocks of a one-dimensional array.
"""

from __future__ import annotations

from xlalite.backends.cpu.index import Affine, Position
from xlalite.backends.cpu.ir_array import lanes_below
from xlalite.backends.cpu.kernels.frame import Frame, for_lanes, lane_count, open_kernel, results_of
from xlalite.backends.cpu.kernels.kind import KernelKind, KernelRequest
from xlalite.backends.cpu.llvm import Function, ModuleBuilder, Value
from xlalite.hlo.computation import HloComputation

BLOCK = 2048
"""Elements of one unit of the parallel extent of a one-dimensional loop; a multiple of every lane count."""


def _declines(request: KernelRequest) -> str | None:
    sizes = {result.shape.dims for result in results_of(request.body)}
    if any(result.shape.is_tuple for result in results_of(request.body)):
        return "a result is itself a tuple"
    return None if len(sizes) == 1 else "the results differ in size"


def _extent(request: KernelRequest) -> int:
    dims = results_of(request.body)[0].shape.dims
    if not dims:
        return 1
    return -(-dims[0] // BLOCK) if len(dims) == 1 else dims[0]


def _emit(module: ModuleBuilder, name: str, request: KernelRequest) -> Function:
    body = request.body
    frame = open_kernel(module, name, body)
    dims = results_of(body)[0].shape.dims
    if not dims:
        _store_results(frame, body, (), 1, None)
    elif 0 not in dims:
        lanes = lane_count(module, body, dims[-1])
        if len(dims) == 1:
            _emit_flat(frame, body, dims[0], lanes)
        else:
            _emit_nest(frame, body, dims, lanes)
    frame.fb.ret()
    return frame.function


def _emit_flat(frame: Frame, body: HloComputation, size: int, lanes: int) -> None:
    fb = frame.fb
    full = size - size % lanes
    if size <= BLOCK:
        for_lanes(fb, size, lanes, lambda at, width, mask: _store_results(frame, body, (at,), width, mask))
        return
    start = fb.mul(frame.begin, BLOCK, "nsw")
    stop = fb.mul(frame.end, BLOCK, "nsw")
    with fb.loop(start, fb.smin(stop, full), lanes) as position:
        _store_results(frame, body, (Affine(position, 1 if lanes > 1 else 0),), lanes, None)
    if full < size:
        with fb.if_(fb.icmp("sgt", stop, full)):
            mask = lanes_below(fb, full, size, lanes)
            _store_results(frame, body, (Affine(full, 1),), lanes, mask)


def _emit_nest(frame: Frame, body: HloComputation, dims: tuple[int, ...], lanes: int) -> None:
    fb = frame.fb

    def nest(level: int, outer: tuple[Position, ...]) -> None:
        if level == len(dims) - 1:
            for_lanes(
                fb,
                dims[level],
                lanes,
                lambda at, width, mask: _store_results(frame, body, (*outer, at), width, mask),
            )
            return
        with fb.loop(0, dims[level]) as position:
            nest(level + 1, (*outer, Affine(position)))

    with fb.loop(frame.begin, frame.end) as position:
        nest(1, (Affine(position),))


def _store_results(
    frame: Frame, body: HloComputation, index: tuple[Position, ...], lanes: int, mask: Value | None
) -> None:
    emitter = frame.emitter(lanes, mask)
    elements = [emitter.element(result, index) for result in results_of(body)]
    for view, element in zip(frame.outputs, elements, strict=True):
        view.write(emitter.math, index, element, mask)


LOOP = KernelKind("loop", _declines, _extent, _emit)
