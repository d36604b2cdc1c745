"""Which way a select-and-scatter goes."""

from __future__ import annotations

from xlalite.backends.codegen.kernels.kernel import Declined, KernelRequest
from xlalite.backends.codegen.kernels.select_and_scatter.kernel import SelectAndScatterKernel
from xlalite.backends.codegen.kernels.select_and_scatter.strided import StridedSelectionKernel, can_take, lanes_of
from xlalite.hlo.types.window import Window, WindowDimension
from xlalite.passes.fusion.kernel_shape import KernelShape


def plan_select_and_scatter(request: KernelRequest, shape: KernelShape) -> SelectAndScatterKernel | Declined:
    """The kernel of a select-and-scatter."""
    root = request.body.root
    if len({operand.shape.dtype for operand in root.operands}) > 1:
        return Declined("its operands have several types")
    window: Window = root.attrs.window
    still = tuple(dim for dim, one in enumerate(window.dimensions) if one == WindowDimension(1))
    dims = shape.domain.dims
    minor = len(dims) - 1
    positions = root.operand(1).shape.dims
    has_lanes = bool(dims) and dims[-1] > 1 and 0 not in positions
    if has_lanes and minor not in still and can_take(window, dims, positions, lanes_of(request)):
        return StridedSelectionKernel(request, dims, positions, window, minor, still)
    lane_dim = minor if minor in still and dims[-1] > 1 else None
    lines = tuple(dim for dim in still if dim != lane_dim)
    return SelectAndScatterKernel(request, dims, positions, window, lane_dim, lines)
