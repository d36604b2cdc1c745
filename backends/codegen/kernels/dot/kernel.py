"""The dot kernel: products of matrices with the elementwise work after them.

The parallel extent counts pieces of work: blocks of the result, rows fastest. In a piece, operands are packed where
that pays, then tile after tile is computed in registers and stored; where the result is not simply the sums, a tile's
sums are finished line by line while they are in the nearest cache.

Loops around tiles that take long are code that products of all sizes share; sizes reach it in a table, and what
follows the sums of a tile is a function that it calls.

Long sums with few results are divided, too: each part has sums of its own, which whoever is done last adds in order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from xlalite.backends.codegen.kernels.dot.computed_operand import (
    computed_operands,
    computing_cycles,
    is_computed_operand,
    why_not_computed,
)
from xlalite.backends.codegen.kernels.dot.computing import computing_function
from xlalite.backends.codegen.kernels.dot.driver import Driver
from xlalite.backends.codegen.kernels.dot.finish import Area, Finisher
from xlalite.backends.codegen.kernels.dot.layout import LONG_TILE, DotLayout, layout_of
from xlalite.backends.codegen.kernels.dot.numbers import why_no_numbers
from xlalite.backends.codegen.kernels.dot.packed_operand import memory_of
from xlalite.backends.codegen.kernels.dot.pieces import plan_in_pieces
from xlalite.backends.codegen.kernels.dot.plan import DotPlan, plan_dot
from xlalite.backends.codegen.kernels.dot.product import Product
from xlalite.backends.codegen.kernels.dot.shared_tiles import announce_tiles, with_shared_tiles
from xlalite.backends.codegen.kernels.dot.view import view_of
from xlalite.backends.codegen.kernels.estimate import Work, bytes_read
from xlalite.backends.codegen.kernels.kernel import Declined, Kernel, KernelRequest
from xlalite.backends.codegen.kernels.kernel_entry import KINDS, TYPES, KernelEntry, enter_kernel, open_kernel
from xlalite.backends.codegen.kernels.scalars import Scalars, TableScalars, table_of
from xlalite.backends.codegen.kernels.throughput import (
    DOT_BYTES_PER_NS,
    FLOPS_PER_NS,
    MULTIPLY_ADDS_PER_NS,
    TRANSCENDENTALS_PER_NS,
)
from xlalite.backends.codegen.kernels.vector_dimension import MANY, vector_dimension
from xlalite.backends.codegen.llvm import I64, PTR, VOID, Function, FunctionBuilder, ModuleBuilder, Value
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.traversal import reachable
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.decision import Number
from xlalite.hlo.types.dtype import DType
from xlalite.passes.analysis.cost_analysis import CostAnalysis
from xlalite.passes.analysis.matrix_products import is_matrix_product
from xlalite.passes.fusion.kernel_shape import KernelShape, results_of
from xlalite.passes.fusion.read_steps import FEW

_LONG_CALL_STEPS = 512
"""Multiply-adds of vectors from which on loops around tiles take longer to optimise than that ever gains."""

_LONG_PIECE = 96
"""Terms of a piece of those of an image, which lie in runs, from which on loops around tiles need not be fast."""

_GATHERED_ELEMENTS = 30
"""Elements of a matrix up to which a loop over elements of many products ends before tiles of one are called: 10,000
times [2,8] by [8] take 68 us of one core, in tiles 227."""

_GATHERED = frozenset(
    dtype for dtype in DType if (dtype.is_floating and dtype.bits >= 16) or (dtype.is_integral and dtype.bits >= 8)
)

_STACK_BYTES = 64 << 10
"""Scratch memory up to this lies on the stack."""


def plan_dot_kernel(request: KernelRequest, shape: KernelShape, *, in_blocks: bool = False) -> DotKernel | Declined:
    """The kernel that computes a product in tiles; perhaps in blocks of rows that the second cache holds."""
    body = request.body
    dot, *others = filter(is_matrix_product, body.instructions)
    if others:
        return Declined("there are several products")
    if any(not result.shape.is_array or result.shape.dims != dot.shape.dims for result in results_of(body)):
        return Declined("a result differs from the product in size")
    if dot.shape.element_count == 0:
        return Declined("the product has no elements")
    if any(operand.shape.element_count == 0 for operand in dot.operands):
        return Declined("its sums have no terms")
    reason = why_no_numbers(dot) or _why_no_lines(dot) or why_not_computed(dot) or _why_gathered(request, dot)
    if reason is not None:
        return Declined(reason)
    read = set(reachable(memory_of(dot), lambda one: one.operands))
    if any(body.parameters[number] in read for _, number in request.in_place):
        return Declined("a result lies in the memory of the product's operand")
    computing = computing_cycles(dot, request.target)
    is_alone = results_of(body) == (dot,)
    plan = plan_dot(dot, request.target, may_overlap=is_alone, computing=computing, in_blocks=in_blocks)
    if not _pads_image(dot):
        return dot_kernel(request, dot, _in_pieces(plan, dot, request))
    from xlalite.backends.codegen.kernels.dot.image_lines import plan_with_lines

    in_lines = plan_with_lines(plan, dot, request.target)
    return Declined("no piece copies a few lines") if in_lines is None else dot_kernel(request, dot, in_lines)


def _in_pieces(plan: DotPlan, dot: HloInstruction, request: KernelRequest) -> DotPlan:
    """The plan in the pieces that somebody chose, or in squares if the result is its own mirror image."""
    if dot.operand(0) is dot.operand(1) and len(results_of(request.body)) == 1 and not dot.backend_config:
        from xlalite.backends.codegen.kernels.dot.mirroring import mirrored  # which few programs need

        return mirrored(plan, dot, request.body, request.target)
    return plan_in_pieces(plan, dot.backend_config)


def _pads_image(product: HloInstruction) -> bool:
    """Whether a product is a convolution whose input is padded in its kernel."""
    return product.opcode == "convolution" and product.operand(0).opcode == "pad"


def _why_gathered(request: KernelRequest, product: HloInstruction) -> str | None:
    """Why a loop over elements is quicker, which gathers the terms of a column's sums; None if it is not.

    Terms that are packed first are slower: [1000,2] by [2,1] takes 1.2 us in tiles, 0.3 in a loop, and [1000,4] by
    [4,4] 2.8 and 0.8.
    """
    view = view_of(product)
    one, rows, others = (view.lhs, view.m, view.n) if view.n <= view.m else (view.rhs, view.n, view.m)
    has_few = view.k <= FEW and (others == 1 or (view.batch_count == 1 and others <= FEW and rows >= MANY))
    has_many = others == 1 and view.batch_count > 1 and rows * view.k <= _GATHERED_ELEMENTS
    if (
        product.opcode != "dot"
        or min(rows, view.k) == 1
        or not (has_few or has_many)
        or not (one.depth.is_single and one.outer.is_single)
        or (one.depth.stride, one.outer.stride) != (1, view.k)
        or any(operand.shape.dtype not in _GATHERED for operand in (product, *product.operands))
        or (1 < others == view.n and not _has_narrow_lines(request, product))
    ):
        return None
    return "its sums have few terms, which a loop gathers"


def _has_narrow_lines(request: KernelRequest, product: HloInstruction) -> bool:
    """Whether lines of a product leave lanes of vectors empty, and a loop has vectors along its rows."""
    dims, bits = product.shape.dims, product.shape.dtype.bits
    return dims[-1] * bits < request.target.vector_bits and vector_dimension(request.body, dims) < len(dims) - 1


def _why_no_lines(product: HloInstruction) -> str | None:
    if not _pads_image(product):
        return None
    from xlalite.backends.codegen.kernels.dot.image_lines import why_no_lines

    return why_no_lines(product)


def dot_kernel(request: KernelRequest, dot: HloInstruction, plan: DotPlan) -> DotKernel:
    """The kernel that computes a product as it is planned."""
    stores_result = results_of(request.body) == (dot,) and plan.numbers.stores_sums and plan.parts == 1
    return DotKernel(request, dot, plan, layout_of(plan, stores_result=stores_result), stores_result)


@dataclass(frozen=True, slots=True)
class DotKernel(Kernel):
    """A product.

    Attributes:
        dot: The instruction.
        plan: How it is computed.
        layout: The memory of a piece of work.
        stores_result: Whether the kernel gives nothing but the sums as they are.
        slot_bytes: Scratch memory that each call has at least, if it takes some.
    """

    dot: HloInstruction
    plan: DotPlan
    layout: DotLayout
    stores_result: bool
    slot_bytes: int = 0

    @property
    def extent(self) -> int:
        """Pieces of work."""
        return self.plan.extent

    @property
    def shares_between_units(self) -> bool:
        """Whether it pays to pack an operand for several pieces."""
        return self.plan.shares_packed

    @property
    def scratch_bytes(self) -> int:
        """What is too large for the stack."""
        size = self.layout.scratch_bytes
        is_slot = size > _STACK_BYTES or self._is_long or self.plan.kept_parts
        return max(size, self.slot_bytes) if is_slot else 0

    @property
    def counters(self) -> int:
        """One for each piece of the result that is computed in parts."""
        return self.plan.units if self.plan.parts > 1 else 0

    @property
    def shared_bytes(self) -> int:
        """Counters and the sums of parts."""
        plan, layout = self.plan, self.layout
        return layout.parts_offset + plan.extent * layout.part * plan.numbers.kept.size_bytes

    def estimate_ns(self, work: Work) -> float:
        """The product's multiply-adds or its traffic, whichever takes longer, and what follows it."""
        body = self.request.body
        moved = sum(map(bytes_read, body.parameters)) + body.root.shape.size_bytes
        # What operands are computed with is in the plan's cycles.
        before = set(reachable((self.dot,), lambda one: one.operands))
        costs = [CostAnalysis().of_instruction(one) for one in body.instructions if one not in before]
        after = sum(cost.flops / FLOPS_PER_NS + cost.transcendentals / TRANSCENDENTALS_PER_NS for cost in costs)
        return max(self.plan.cycles / MULTIPLY_ADDS_PER_NS, moved / DOT_BYTES_PER_NS) + after

    @property
    def figures(self) -> dict[str, Number]:
        """Form, tile, piece of work, and what is packed."""
        plan = self.plan
        packed = [side for side, is_packed in (("lhs", plan.packs_lhs), ("rhs", plan.packs_rhs)) if is_packed]
        if plan.view.exchanged:
            packed = [{"lhs": "rhs", "rhs": "lhs"}[side] for side in packed]
        if plan.view.rhs.panel:
            packed.append("rhs before")
        if plan.shares_panels:
            packed.append("rhs in panels")
        run = max(plan.view.lhs.looked_up, plan.view.rhs.looked_up)
        return {
            "form": plan.form.value,
            "tile": f"{plan.rows}x{plan.columns}",
            "piece": f"{plan.unit_rows}x{plan.unit_columns}x{plan.unit_depth}",
            **({"parts": plan.parts} if plan.parts > 1 else {}),
            "packed": ", ".join(packed) or "nothing",
            **({"places_looked_up": plan.view.k // run} if run else {}),
            **({"mirrored": 1} if plan.mirrors else {}),
            **({"lines": self.plan.staging.lines} if self.plan.staging is not None else {}),
            **({"computed": computed} if (computed := computed_operands(self.dot)) else {}),
            "scratch_bytes": self.layout.scratch_bytes,
        }

    @property
    def _is_long(self) -> bool:
        """Whether it does nothing but call functions: for tiles that take long, and what follows them.

        Not of a phase: several loops for many sizes take longer to write than LLVM takes for those of theirs.
        """
        plan = self.plan
        if plan.view.rows is not None:
            return False
        is_image_in_runs = plan.depth_units > 1 and not plan.view.lhs.depth.is_single
        is_long = plan.unit_depth >= (_LONG_PIECE if is_image_in_runs else LONG_TILE) or plan.in_steps
        return is_long and plan.extent > 0

    @property
    def _only_calls(self) -> bool:
        """Whether nothing is computed outside of tiles and functions that pack, but the sums of parts."""
        return results_of(self.request.body) == (self.dot,)

    @property
    def _tile_steps(self) -> int:
        """Multiply-adds of vectors in one call of a tile."""
        plan = self.plan
        return plan.rows * -(-plan.tile_columns // plan.lanes) * plan.unit_depth

    def announce(self, module: ModuleBuilder) -> None:
        """Says which tile it needs."""
        announce_tiles(module, self.plan, self.layout)

    def emit(self, module: ModuleBuilder, name: str) -> Function:
        """Walks over pieces of work."""
        kernel = replace(self, layout=with_shared_tiles(module, self.plan, self.layout))
        return kernel._call_of_driver(module, name) if self._is_long else kernel._loops(module, name)

    def emit_phase(self, module: ModuleBuilder) -> Function:
        """The same of a phase: a function that stands in a module of its own, which LLVM begins with at once."""
        kernel = replace(self, layout=with_shared_tiles(module, self.plan, self.layout))

        def build(fb: FunctionBuilder) -> None:
            def callee(function: Function) -> Value:
                return fb.module.declare(function.name, function.return_type, function.parameter_types)

            kernel._write_loops(module, enter_kernel(fb, self.request), callee, None)

        return module.shared_function(None, "dot_phase", VOID, TYPES, KINDS, build)

    def _loops(self, module: ModuleBuilder, name: str) -> Function:
        """Loops that are for this product alone."""
        entry = open_kernel(module, name, self.request)
        finisher = Finisher(entry, self.request.body, self.dot, self.plan, self.layout)
        self._write_loops(module, entry, lambda function: function, finisher, self._computing(module, name))
        return entry.function

    def _write_loops(
        self,
        module: ModuleBuilder,
        entry: KernelEntry,
        callee: Callable[[Function], Value],
        finisher: Finisher | None,
        computing: Sequence[Function | None] = (None, None),
    ) -> None:
        only_calls = self._only_calls or (finisher is not None and finisher.only_calls)
        # Of loops around calls there is little to make, of which LLVM would make places that do not fit into registers;
        # those that add the sums of parts are written in vectors.
        entry.fb.is_as_written = only_calls
        entry.fb.is_strength_reduced = not only_calls
        if only_calls and self._tile_steps >= _LONG_CALL_STEPS:
            entry.fb.only_calls()
        if self.plan.extent:
            finish = None if finisher is None else finisher.finish
            Driver(module, entry, self._product, Scalars(entry.fb), callee, finish, computing).emit()
        entry.fb.ret()

    @property
    def _product(self) -> Product:
        return Product(self.request.body, self.dot, self.plan, self.layout, self.stores_result, self.scratch_bytes)

    def _call_of_driver(self, module: ModuleBuilder, name: str) -> Function:
        """A call of loops that programs share: they are given the sizes, and the functions that compute."""
        functions: list[Function] = []
        numbers: list[int] = []
        finishing = None if self._only_calls else self._finishing(module, name)
        computing = self._computing(module, name)

        def build(fb: FunctionBuilder) -> None:
            _, _, _, sizes, places = fb.parameters

            def callee(function: Function) -> Value:
                functions.append(function)
                return fb.load(PTR, fb.gep(PTR, places, len(functions) - 1), 8)

            def finish(area: Area, sums: Value) -> None:
                assert finishing is not None, "something follows the product"
                given = map(math.value, (area.product, area.row, area.column, area.height, area.width))
                fb.call_pointer(callee(finishing), VOID, (fb.parameters[0], *given, sums))

            fb.only_calls()
            math = TableScalars(fb, sizes)
            entry = enter_kernel(fb, self.request)
            Driver(module, entry, self._product, math, callee, None if finishing is None else finish, computing).emit()
            numbers.extend(math.numbers)
            fb.ret()

        types, kinds = (*TYPES, PTR, PTR), (*KINDS, "noalias readonly", "noalias readonly")
        driver = module.shared_function(None, "dot_driver", VOID, types, kinds, build)
        fb = module.function(name, VOID, TYPES, linkage="hidden")
        fb.only_calls()
        places = fb.alloca(PTR, len(functions), align=8)
        for number, function in enumerate(functions):
            fb.store(function, fb.gep(PTR, places, number), 8)
        fb.call(driver, *fb.parameters, table_of(module, numbers), places)
        fb.ret()
        return fb.function

    def _computing(self, module: ModuleBuilder, name: str) -> list[Function | None]:
        """Functions that compute operands where they would be packed, of those that are in no memory."""
        return [
            computing_function(module, module.unique_name(f"{name}.operand"), self.request, self._product, number)
            if is_computed_operand(operand)
            else None
            for number, operand in enumerate(memory_of(self.dot))
        ]

    def _finishing(self, module: ModuleBuilder, name: str) -> Function:
        """A function that computes results from sums: `void finish(ptr args, i64..., ptr sums)`, with an `Area`."""
        kinds = ("noalias readonly", *("",) * 5, "noalias")
        types = (PTR, *(I64,) * 5, PTR)
        fb = module.function(f"{name}.finish", VOID, types, parameter_attributes=kinds, linkage="hidden")
        entry, plan = enter_kernel(fb, self.request), self.plan
        _, product, row, column, height, width, sums = fb.parameters
        # Of whole tiles the sizes are known.
        is_tile, view = plan.parts == 1, plan.view
        has_whole_rows = plan.unit_rows % plan.rows == plan.row_run % plan.rows == 0
        area = Area(
            product if view.batch_count > 1 else 0,
            row,
            column,
            plan.rows if is_tile and has_whole_rows else height,
            plan.tile_columns if is_tile and plan.column_run % plan.tile_columns == 0 and view.seen is None else width,
        )
        finisher = Finisher(entry, self.request.body, self.dot, self.plan, self.layout)
        if finisher.only_calls:
            fb.only_calls()
        finisher.finish(area, sums)
        fb.ret()
        return fb.function
