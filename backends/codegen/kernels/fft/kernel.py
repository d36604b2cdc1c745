"""The Fourier transform kernel: what is transformed how, and the memory that it takes."""

from __future__ import annotations

import math
from dataclasses import replace

from xlalite.backends.codegen.arrays.types import representation
from xlalite.backends.codegen.kernels.fft.passes import Lanes
from xlalite.backends.codegen.kernels.fft.plan import LinePlan, SplitPlan, plan_line, split_line
from xlalite.backends.codegen.kernels.fft.transform import Dimensions, Transform
from xlalite.backends.codegen.kernels.fork import fork_of
from xlalite.backends.codegen.kernels.kernel import Declined, Kernel, KernelRequest
from xlalite.backends.codegen.kernels.kernel_entry import open_kernel
from xlalite.backends.codegen.kernels.scratch import aligned, own_slot
from xlalite.backends.codegen.llvm import Function, ModuleBuilder
from xlalite.hlo.ops.fourier import FftAttrs, FftType
from xlalite.hlo.records import dataclass
from xlalite.passes.fusion.kernel_shape import KernelShape

_MOST_SCRATCH_BYTES = 1 << 28

_SPLIT, _SPLIT_CONVOLUTION = 0.9, 0.65
"""How much of what its working lanes promise a row keeps as a matrix, where threads meet after each half, and where the
row is transformed by a convolution: 200 rows of 398 real numbers and then their columns take 245 us of two threads so,
and 55 many rows at once; 64 complex rows of 199 take 31 and 20 us of one.
"""


def plan_fft(request: KernelRequest, shape: KernelShape) -> FftKernel | Declined:
    """The kernel of a transform."""
    fft = request.body.root
    attrs: FftAttrs = fft.attrs
    kind, lengths = attrs.fft_type, attrs.fft_length
    signal = fft.operand(0).shape if kind is FftType.RFFT else fft.shape
    outer = signal.rank - len(lengths)
    if fft.shape.element_count and signal.dims[outer:] != lengths:
        return Declined("fft_length is not that of the operand")
    if request.in_place:
        return Declined("the result lies in the memory of the operand")
    too_long = Declined(f"lines of {max(lengths)} elements need more scratch memory than {_MOST_SCRATCH_BYTES} bytes")
    if max(lengths) > _MOST_SCRATCH_BYTES:  # not even planned, as that takes time, too
        return too_long
    component = signal.dtype.component if signal.dtype.is_complex else signal.dtype
    scalar = representation(component).register
    lanes = Lanes(component, scalar, request.target.lanes(scalar.bits))
    if not fft.shape.element_count:
        return FftKernel(request, 0, Dimensions(lanes, kind, lengths, (), plan_line(1)))
    batch = math.prod(signal.dims[:outer])
    rows = math.prod(lengths[:-1]) * (batch if len(lengths) == 1 else 1)
    across = tuple(plan_line(length) for length in lengths[:-1])
    halves = kind.is_real and lengths[-1] % 2 == 0
    line = lengths[-1] // 2 if halves else lengths[-1]
    along = _plan_rows(request, lanes, rows, line, is_real=kind.is_real)
    if len(lengths) == 1 and isinstance(along, LinePlan) and rows < lanes.count:
        # Idle lanes would only take room in the caches.
        lanes = replace(lanes, count=max(2, 1 << (rows - 1).bit_length()))
    kernel = FftKernel(request, batch, Dimensions(lanes, kind, lengths, across, along))
    if kernel.scratch_bytes > _MOST_SCRATCH_BYTES:
        return too_long
    return kernel


def _plan_rows(request: KernelRequest, lanes: Lanes, rows: int, length: int, *, is_real: bool) -> LinePlan | SplitPlan:
    """Many rows at once or one row as a matrix: what leaves fewer lanes idle and stays in the cache."""
    whole = plan_line(length)
    found = split_line(length, lanes.count)
    if found is None or (is_real and length <= lanes.count):
        return whole
    split, busy = found
    fits = 2 * whole.size * lanes.element_bytes() <= request.target.cache_bytes[1] // 2
    at_once = rows / (-(-rows // lanes.count) * lanes.count)
    kept = _SPLIT_CONVOLUTION if whole.is_convolution else _SPLIT
    return whole if fits and at_once >= busy * kept else split


@dataclass(frozen=True, slots=True)
class FftKernel(Kernel):
    """A transform of the last dimensions.

    Attributes:
        batch: How many transforms.
        dimensions: What each of them is.
    """

    batch: int
    dimensions: Dimensions

    @property
    def extent(self) -> int:
        """The transforms, or as many of them as lanes."""
        return -(-self.batch // self.dimensions.unit)

    @property
    def forks(self) -> bool:
        """If one transform is many groups of lines."""
        return self.dimensions.unit == 1

    @property
    def scratch_bytes(self) -> int:
        """All areas, or those of a task."""
        areas = sum(map(aligned, self.dimensions.area_bytes))
        return areas - self.shared_bytes

    @property
    def shared_bytes(self) -> int:
        """What tasks of a transform exchange."""
        return self.dimensions.shared_bytes if self.request.threads > 1 else 0

    def emit(self, module: ModuleBuilder, name: str) -> Function:
        """Transforms the units [begin, end)."""
        entry = open_kernel(module, name, self.request)
        fb, own = entry.fb, self.dimensions
        if not own.kind.is_real:  # which LLVM makes 5 % faster
            fb.is_as_written = True
        arguments = entry.inputs[0].pointer, entry.outputs[0].pointer, self.batch, (entry.begin, entry.end)
        fork = fork_of(entry, self)
        if self.batch and fork is not None:
            Transform.of(fb, own, fork.shared, fork.shared, fork).emit(*arguments)
        elif self.batch:
            with own_slot(entry, self.scratch_bytes) as slot:
                Transform.of(fb, own, slot, None, None).emit(*arguments)
        fb.ret()
        return entry.function
