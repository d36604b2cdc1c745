"""The kernel of a convolution with holes between the elements of its input: a product for each phase of its results.

Results that lie as far behind an element as one another see the same part of the kernel, and no holes. Their product
reads that part where it lies, and stores each row of sums where it belongs among those of other phases. A piece of work
has its share of all of them: they see the same part of the input, and their results lie side by side.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import accumulate, product

from xlalite.backends.codegen.arrays.index import row_major_strides
from xlalite.backends.codegen.arrays.types import representation
from xlalite.backends.codegen.kernels.dot.kernel import DotKernel
from xlalite.backends.codegen.kernels.dot.layout import DotLayout, layout_of
from xlalite.backends.codegen.kernels.dot.plan import DotPlan, plan_dot
from xlalite.backends.codegen.kernels.dot.tilings import Form
from xlalite.backends.codegen.kernels.dot.view import DotView, view_of_convolution
from xlalite.backends.codegen.kernels.estimate import Work
from xlalite.backends.codegen.kernels.kernel import Declined, Kernel, KernelRequest
from xlalite.backends.codegen.kernels.scalars import Scalars
from xlalite.backends.codegen.kernels.scratch import COUNTER_BYTES, aligned
from xlalite.backends.codegen.llvm import I8, I64, PTR, VOID, Function, ModuleBuilder, TargetInfo
from xlalite.hlo.building.construct import slice_of
from xlalite.hlo.building.create import create
from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ops.convolution import ConvolutionAttrs
from xlalite.hlo.ops.structural import ParameterAttrs
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.decision import Number
from xlalite.hlo.types.window import Window
from xlalite.passes.analysis.convolution_phases import Phase, phase_count, phases_of
from xlalite.passes.fusion.kernel_shape import KernelShape

_ADDRESSES = 5
"""What a product's kernel is given: image, kernel, result, scratch memory and what calls share."""


def plan_phases(request: KernelRequest, shape: KernelShape) -> PhasesKernel | Declined:
    """The kernel of a convolution whose phases are products."""
    convolution = request.body.root
    if any(operand.opcode != "parameter" for operand in convolution.operands):
        return Declined("an operand is computed in the kernel")
    chosen, bodies, views, plans = zip(*_planned(convolution, request.target), strict=True)
    kernels = [_kernel(replace(request, body=body), plan) for body, plan in zip(bodies, _alike(plans), strict=True)]
    begins = [
        (view.lhs.origin, view.rhs.origin, _first(convolution, phases))
        for phases, view in zip(chosen, views, strict=True)
    ]
    return PhasesKernel(request, convolution, tuple(_beside_one_another(begins, kernels)))


def cycles_of_phases(convolution: HloInstruction, target: TargetInfo) -> float:
    """Vector multiply-adds that the products of all phases take, about."""
    return sum(plan.cycles for _, _, _, plan in _planned(convolution, target))


def _planned(
    convolution: HloInstruction, target: TargetInfo
) -> Iterator[tuple[tuple[Phase, ...], HloComputation, DotView, DotPlan]]:
    """The phases, and each as a convolution of its own, where its operands and results lie, and how it is computed."""
    for chosen in product(*phases_of(convolution.attrs, convolution.operand(0).shape, convolution.shape)):
        body = _body(convolution, chosen)
        view = _view(convolution, body)
        yield chosen, body, view, _plan(body, view, target)


@dataclass(frozen=True, slots=True)
class PhaseProduct:
    """The product of a phase.

    Attributes:
        kernel: What computes it; operands are those of the convolution.
        begins: Where the part of the image, of the kernel and of the result begin that are its own, in elements.
        shared: Where the memory begins that its calls share, in bytes.
    """

    kernel: DotKernel
    begins: tuple[int, int, int]
    shared: int

    @property
    def places(self) -> bytes:
        """What is added to each of the addresses that the kernel is given, in bytes."""
        arrays = *(operand.shape for operand in self.kernel.dot.operands), self.kernel.dot.shape
        sizes = (representation(array.dtype).size_bytes for array in arrays)
        places = *(begin * size for begin, size in zip(self.begins, sizes, strict=True)), 0, self.shared
        return b"".join(place.to_bytes(8, "little") for place in places)


@dataclass(frozen=True, slots=True)
class PhasesKernel(Kernel):
    """A convolution with holes in its input.

    Attributes:
        convolution: The instruction.
        products: One for each phase.
    """

    convolution: HloInstruction
    products: tuple[PhaseProduct, ...]

    @property
    def extent(self) -> int:
        """As many as the product of most pieces has."""
        return max(one.kernel.extent for one in self.products)

    @property
    def scratch_bytes(self) -> int:
        """Slots are as large as the largest one needs."""
        return max(one.kernel.scratch_bytes for one in self.products)

    @property
    def counters(self) -> int:
        """Those of all products."""
        return sum(one.kernel.counters for one in self.products)

    @property
    def shared_bytes(self) -> int:
        """Where that of the last product ends."""
        last = self.products[-1]
        return last.shared + last.kernel.shared_bytes

    @property
    def figures(self) -> dict[str, Number]:
        """How many phases, and how the longest product is computed."""
        longest = max((one.kernel for one in self.products), key=lambda kernel: kernel.plan.cycles)
        return {"phases": len(self.products), **longest.figures}

    def estimate_ns(self, work: Work) -> float:
        """What the products take."""
        return sum(one.kernel.estimate_ns(work) for one in self.products)

    def announce(self, module: ModuleBuilder) -> None:
        """Says which tiles the products need."""
        for one in self.products:
            one.kernel.announce(module)

    def emit(self, module: ModuleBuilder, name: str) -> Function:
        """Calls a function for each phase, with its share of the pieces; one serves all that differ in places only."""
        self.announce(module)
        alike: dict[tuple[DotPlan, DotLayout], list[PhaseProduct]] = {}
        for one in self.products:
            alike.setdefault((one.kernel.plan, one.kernel.layout), []).append(one)
        functions = [group[0].kernel.emit_phase(module) for group in alike.values()]
        fb = module.function(
            name, VOID, (PTR, I64, I64), parameter_attributes=("noalias readonly", "", ""), linkage="hidden"
        )
        fb.only_calls()
        arguments, begin, end = fb.parameters
        math = Scalars(fb)
        lhs, rhs = (operand.attrs.number for operand in self.convolution.operands)
        result = self.request.body.parameter_count
        numbers = lhs, rhs, *range(result, result + (3 if self.shared_bytes else 2 if self.scratch_bytes else 1))
        bases = [fb.load(PTR, fb.gep(PTR, arguments, number), 8) for number in numbers]
        pointers = fb.alloca(PTR, len(bases), align=8)
        for group, function in zip(alike.values(), functions, strict=True):
            part = group[0].kernel.extent
            first, last = (
                one if part == self.extent else math.value(math.divide(math.multiply(one, part), self.extent))
                for one in (begin, end)
            )
            table = module.constant_bytes(b"".join(one.places for one in group))
            with fb.if_(fb.icmp("slt", first, last)), math.steps(len(group), 1) as number:
                for place, base in enumerate(bases):
                    offset = fb.load(I64, fb.gep(I64, table, math.add(math.multiply(number, _ADDRESSES), place)), 8)
                    fb.store(fb.gep(I8, base, offset), fb.gep(PTR, pointers, place), 8)
                fb.call(function, pointers, first, last)
        fb.ret()
        return fb.function


def _body(convolution: HloInstruction, phases: Sequence[Phase]) -> HloComputation:
    """A phase as a convolution of its own, whose kernel is a slice."""
    attrs: ConvolutionAttrs = convolution.attrs
    labels = attrs.dim_labels
    image, kernel = (
        create("parameter", (), ParameterAttrs(number), shape=operand.shape, name=f"operand_{number}")
        for number, operand in enumerate(convolution.operands)
    )
    dims, ranges = list(convolution.shape.dims), [(0, size, 1) for size in kernel.shape.dims]
    for phase, one, dim, across in zip(
        phases, attrs.window.dimensions, labels.output_spatial, labels.kernel_spatial, strict=True
    ):
        dims[dim] = len(range(phase.number, dims[dim], phase_count(one)))
        ranges[across] = phase.read(one)
    body = HloComputation(f"phase_of_{convolution.name}")
    seen = slice_of(body.add(kernel), ranges)
    operands = body.add(image), seen if seen is kernel else body.add(seen)
    own = replace(attrs, window=Window(tuple(phase.window for phase in phases)))
    body.set_root(body.add(create("convolution", operands, own, shape=convolution.shape.with_dims(dims))))
    return body


def _view(convolution: HloInstruction, body: HloComputation) -> DotView:
    """The view of a phase, whose results are some steps apart in the whole result."""
    attrs: ConvolutionAttrs = convolution.attrs
    strides = [*row_major_strides(convolution.shape.dims)]
    for dim, one in zip(attrs.dim_labels.output_spatial, attrs.window.dimensions, strict=True):
        strides[dim] *= phase_count(one)
    return view_of_convolution(body.root, convolution.operand(0).shape.dims, spread=tuple(strides))


def _plan(body: HloComputation, view: DotView, target: TargetInfo) -> DotPlan:
    """The plan for a phase that is told where its operands begin."""
    lhs, rhs = (replace(one, origin=0) for one in (view.lhs, view.rhs))
    return plan_dot(body.root, target, may_overlap=True, view=replace(view, lhs=lhs, rhs=rhs))


def _alike(plans: Sequence[DotPlan]) -> Sequence[DotPlan]:
    """The plans with tiles of as many rows, where one of the numbers does for all and no rest needs a tile of its own.

    A tile takes LLVM longer than all else of a phase.
    """
    is_packed = all(plan.packs_lhs for plan in plans)
    is_read = not any(plan.packs_lhs or plan.unit_depth < plan.view.k for plan in plans)
    if any(plan.form is not Form.COLUMNS for plan in plans) or not (is_packed or is_read):
        return plans

    def computed(rows: int) -> int:
        return sum(plan.view.m // plan.row_run * -(-plan.row_run // rows) * rows * plan.view.k for plan in plans)

    fitting = {plan.rows for plan in plans if all(plan.rows <= one.row_run for one in plans)}
    rows = min(sorted(fitting), key=computed, default=0)
    return [_with_rows(plan, rows) if rows else plan for plan in plans]


def _with_rows(plan: DotPlan, rows: int) -> DotPlan:
    if not plan.packs_lhs:
        return replace(plan, rows=rows, overlaps=plan.row_run % rows > 0)
    if plan.rows == rows:
        return plan
    return replace(plan, rows=rows, unit_rows=min(-(-plan.unit_rows // rows) * rows, plan.view.m))


def _kernel(request: KernelRequest, plan: DotPlan) -> DotKernel:
    stores_result = plan.numbers.stores_sums and plan.parts == 1 and _stores_rows(plan)
    return DotKernel(request, request.body.root, plan, layout_of(plan, stores_result=stores_result), stores_result)


def _stores_rows(plan: DotPlan) -> bool:
    """Whether the rows of each tile are a line apart in the result."""
    rows = plan.view.rows
    assert rows is not None, "results of phases lie among others"
    is_in_order = plan.form in (Form.COLUMNS, Form.DEPTH) and not (plan.flipped or plan.view.exchanged)
    return is_in_order and (rows.is_single or rows.run % plan.row_run == 0)


def _first(convolution: HloInstruction, phases: Sequence[Phase]) -> int:
    """Where the first result of a phase lies, in elements."""
    strides = row_major_strides(convolution.shape.dims)
    space = convolution.attrs.dim_labels.output_spatial
    return sum(phase.number * strides[dim] for phase, dim in zip(phases, space, strict=True))


def _beside_one_another(begins: Sequence[tuple[int, int, int]], kernels: Sequence[DotKernel]) -> Iterator[PhaseProduct]:
    """The products with memory of their own, counters of all first, and slots of one size."""
    slot_bytes = max(kernel.scratch_bytes for kernel in kernels)
    counters = [*accumulate((kernel.counters * COUNTER_BYTES for kernel in kernels), initial=0)]
    sizes = (aligned(kernel.shared_bytes - kernel.layout.parts_offset) for kernel in kernels)
    sums = accumulate(sizes, initial=aligned(counters[-1]))
    for begin, kernel, counter, place in zip(begins, kernels, counters, sums, strict=False):
        layout = replace(kernel.layout, parts_offset=place - counter)
        yield PhaseProduct(replace(kernel, layout=layout, slot_bytes=slot_bytes), begin, counter)
