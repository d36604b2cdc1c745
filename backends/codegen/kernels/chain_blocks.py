"""The blocks of a chain: whether its parts walk over the same rows in the same order, and how many rows at a time."""

from __future__ import annotations

import math
from dataclasses import replace

from xlalite.backends.codegen.arrays.index import row_major_strides
from xlalite.backends.codegen.kernels.chain import ChainKernel, Head, Rows, Tail
from xlalite.backends.codegen.kernels.chain_zeros import MASKED_COLUMNS, RowZeros
from xlalite.backends.codegen.kernels.dot.computed_operand import computing_cycles
from xlalite.backends.codegen.kernels.dot.kernel import DotKernel, dot_kernel
from xlalite.backends.codegen.kernels.dot.plan import DotPlan, plan_dot
from xlalite.backends.codegen.kernels.dot.tilings import Form
from xlalite.backends.codegen.kernels.dot.transfer import operand_cycles
from xlalite.backends.codegen.kernels.kernel import Declined, KernelRequest
from xlalite.backends.codegen.kernels.seen_columns import columns_ahead, columns_kept
from xlalite.backends.codegen.kernels.throughput import MULTIPLY_ADDS_PER_NS, bytes_per_ns
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.traversal import reachable
from xlalite.hlo.records import dataclass
from xlalite.passes.fusion.domain import Place
from xlalite.passes.fusion.kernel_shape import results_of

_LEAST_BLOCKS = 8
"""Blocks that the rows of all products are divided into, if there are enough of them."""

LEAST_PRODUCTS = 4
"""Products from which on there is enough for threads to share where all blocks of one are a single task."""


@dataclass(frozen=True, slots=True)
class WholeChain:
    """The parts of a chain, planned for all rows.

    Attributes:
        request: What it computes.
        heads: The products that rows are made of.
        between: The rows.
        tails: The products of rows.
    """

    request: KernelRequest
    heads: tuple[Head, ...]
    between: Rows
    tails: tuple[Tail, ...]

    def in_blocks(self) -> ChainKernel | Declined:
        """The kernel that computes it block after block, if all parts walk over the same rows in the same order."""
        reason = self._why_other_rows() or self._why_rows_in_other_order()
        if reason is not None:
            return Declined(reason)
        windows, line_bytes, in_place = self._windows()
        heads = tuple(self._looking_ahead(head) for head in self.heads)
        height = self._height(heads, sum(line_bytes))
        if isinstance(height, Declined):
            return height
        rows = self.between.kernel
        tails = tuple(self._in_pieces(tail, height) for tail in self.tails)
        heads = tuple(replace(head, kernel=_with_rows(head.kernel, height)) for head in heads)
        if height < self._m:
            heads, tails = self._keeping(heads, tails)
        plans = [head.kernel.plan for head in heads] + [tail.kernel.plan for tail in tails]
        again = sum(map(_packing_again_ns, plans))
        saved = 2 * sum(array.shape.size_bytes for array in windows)
        if again > saved / bytes_per_ns(saved, self.request.target.cache_bytes):
            return Declined("the products would pack their right operands again for every block")
        is_one_mask = len(tails) == 1 and windows.keys() == {heads[0].results[0], tails[0].handed}
        kept = None
        if is_one_mask and heads[0].ahead is not None and rows.stop_step and tails[0].zeros is not None:
            kept = columns_kept(tails[0].handed)
        request = replace(rows.request, in_place=in_place)
        between = replace(self.between, kernel=replace(rows, request=request, counts_rows=True, stops=kept is not None))
        sizes = self._batch, self._m, height
        return ChainKernel(self.request, heads, between, tails, windows, line_bytes, *sizes, kept)

    def _keeping(self, heads: tuple[Head, ...], tails: tuple[Tail, ...]) -> tuple[tuple[Head, ...], tuple[Tail, ...]]:
        """Products that keep what they pack of right operands from block to block, as far as the second cache goes."""
        # Where columns are left out, a part of the right operand may be there without its last terms.
        are_whole = [True] * len(heads) + [tail.zeros is None and not tail.sums_rows for tail in tails]
        room, kernels = self.request.target.cache_bytes[1] // 2, []
        products = [head.kernel for head in heads] + [tail.kernel for tail in tails]
        for kernel, is_whole in zip(products, are_whole, strict=True):
            plan = kernel.plan
            count = plan.column_units * plan.depth_units
            size = count * kernel.layout.rhs.size_bytes
            is_kept = plan.packs_rhs and is_whole and size <= room
            room -= size if is_kept else 0
            plan = replace(plan, kept_parts=count) if is_kept else plan
            kernels.append(dot_kernel(kernel.request, kernel.dot, plan))
        return (
            tuple(replace(head, kernel=kernel) for head, kernel in zip(heads, kernels, strict=False)),
            tuple(replace(tail, kernel=kernel) for tail, kernel in zip(tails, kernels[len(heads) :], strict=True)),
        )

    @property
    def _batch(self) -> int:
        return self.heads[0].kernel.plan.view.batch_count

    @property
    def _m(self) -> int:
        return self.heads[0].kernel.plan.view.m

    @property
    def _n(self) -> int:
        return self.heads[0].kernel.plan.view.n

    @property
    def _by_rows(self) -> tuple[Head | Tail, ...]:
        """The products that give a block's rows of their results."""
        return *self.heads, *(tail for tail in self.tails if not tail.sums_rows)

    def _why_other_rows(self) -> str | None:
        plans = [head.kernel.plan for head in self.heads] + [tail.kernel.plan for tail in self.tails]
        if any(plan.form is not Form.COLUMNS or plan.flipped or plan.view.exchanged for plan in plans):
            return "a product's rows are not those of its left operand"
        views, sizes = [plan.view for plan in plans], (self._batch, self._m, self._n)
        if any((view.batch_count, view.m, view.n) != sizes for view in views[: len(self.heads)]):
            return "the products have other rows"
        batches = {view.batch_count for view in views}
        if len(batches) > 1 or not all(_follows(tail, self._m, self._n) for tail in self.tails):
            return "a second product goes through the rows in another order"
        if self._batch < LEAST_PRODUCTS and any(tail.sums_rows for tail in self.tails):
            return "a second product sums over rows, and there are too few for threads to share"
        return None

    def _why_rows_in_other_order(self) -> str | None:
        kernel, operands = self.between.kernel, self.between.operands
        body, plan = kernel.request.body, kernel.plan
        read = [plan.shape.places[body.parameters[operands.index(head.results[0])]] for head in self.heads]
        handed = {self.between.results.index(tail.handed) for tail in self.tails}
        given = results_of(body)
        if any(place is not Place.FULL for place in read) or any(given[n] not in plan.full_results for n in handed):
            return "the rows are read or written in another order"
        if math.prod(plan.shape.domain.row_dims) != self._batch * self._m:
            return "what is reduced are not the rows of the products"
        return None

    def _looking_ahead(self, head: Head) -> Head:
        """The head that computes no columns which a mask hides, if there is one."""
        if head.results[0].shape.dims[-2:] != (self._m, self._n):
            return head
        ahead, plan = columns_ahead(head.results[0], self.between.results), head.kernel.plan
        if ahead is None:
            return head
        if plan.walks_columns:  # which packs rows for each piece of the columns
            dot, target = head.kernel.dot, self.request.target
            plan = plan_dot(dot, target, computing=computing_cycles(dot, target), in_blocks=True)
        columns = -(-MASKED_COLUMNS // plan.columns) * plan.columns
        plan = replace(plan, unit_columns=min(plan.unit_columns, columns))
        return replace(head, kernel=replace(head.kernel, plan=plan), ahead=ahead)

    def _windows(self) -> tuple[dict[HloInstruction, int], tuple[int, ...], tuple[tuple[int, int], ...]]:
        """The windows of arrays, the bytes of a row in each, and what rows share with which results of heads."""
        heads, results = [head.results[0] for head in self.heads], results_of(self.request.body)
        windows = {head: number for number, head in enumerate(heads)}
        free, shared = list(heads), []
        for number, array in enumerate(self.between.results):
            if array in results:
                continue
            like = next((head for head in free if head.shape.size_bytes == array.shape.size_bytes), None)
            windows[array] = len(set(windows.values())) if like is None else windows[like]
            if like is not None:
                free.remove(like)
                shared.append((number, self.between.operands.index(like)))
        line_bytes = {window: array.shape.size_bytes // (self._batch * self._m) for array, window in windows.items()}
        return windows, tuple(line_bytes.values()), tuple(shared)

    def _height(self, heads: tuple[Head, ...], line_bytes: int) -> int | Declined:
        """Rows of a block."""
        cache = self.request.target.cache_bytes[1]
        steps = [part.kernel.plan.row_step for part in self._by_rows]
        steps += [tail.kernel.plan.depth_step for tail in self.tails if tail.sums_rows]
        step = min(math.lcm(*steps), self._m)
        if step * line_bytes > cache:
            return Declined("a few rows fill the second cache")
        most = cache // 2 // line_bytes
        if all(not tail.sums_rows for tail in self.tails):
            most = min(most, -(-self._batch * self._m // _LEAST_BLOCKS))
        if any(head.ahead is not None for head in heads):
            most = min(most, MASKED_COLUMNS)
        return _even(self._m, max(most, step), step)

    def _in_pieces(self, tail: Tail, height: int) -> Tail:
        """A product of rows whose pieces are blocks of rows, or of terms."""
        kernel, plan = tail.kernel, tail.kernel.plan
        if tail.sums_rows:
            view = plan.view
            plan = replace(plan, unit_rows=view.m, unit_columns=view.n, unit_depth=height, part_depth=view.k)
            plan = replace(plan, overlaps=False, in_steps=True)
            if _is_left(tail) and plan.numbers.word == 1 and plan.numbers.is_direct(plan.numbers.lhs):
                # A block of rows is in the second cache.
                plan = replace(plan, packs_lhs=False, rows_outside=False)
            kernel = dot_kernel(kernel.request, kernel.dot, plan)
        else:
            kernel = _with_rows(kernel, height)
        zeros = None
        # What is not stored at once is finished with all of its rows.
        is_cut = kernel.stores_result and plan.row_run == plan.view.m if tail.sums_rows else True
        if is_cut and _is_left(tail) and self._may_end_in_zeros(tail.handed):
            zeros = RowZeros.of(kernel, self.between.kernel.stop_step or 1, sums_rows=tail.sums_rows)
        return replace(tail, kernel=kernel, zeros=zeros)

    def _may_end_in_zeros(self, rows: HloInstruction) -> bool:
        """Whether something chooses on the way to the rows, or is added to what is made of products, as masks are."""
        heads = [head.results[0] for head in self.heads]
        between = reachable((rows,), lambda one: () if one in heads else one.operands)
        made = set(reachable(heads, lambda one: one.users)).intersection(between)
        return any(
            one.opcode == "select" or (one.opcode == "add" and not made.issuperset(one.operands))
            for one in made
            if one.shape.dims == rows.shape.dims
        )


def sums_rows(product: HloInstruction, rows: HloInstruction) -> bool:
    """Whether a product sums over the rows of an operand, and not over its columns."""
    attrs, position = product.attrs, product.operands.index(rows)
    contracting = (attrs.lhs_contracting_dims, attrs.rhs_contracting_dims)[position]
    return rows.shape.rank - 1 not in contracting


def _is_left(tail: Tail) -> bool:
    """Whether a product has the rows on its left."""
    kernel = tail.kernel
    return kernel.dot.operand(0) is kernel.request.body.parameters[tail.operands.index(tail.handed)]


def _follows(tail: Tail, m: int, n: int) -> bool:
    """Whether a product goes through the rows in their order: [batch, m, n] row-major."""
    kernel, view, is_left = tail.kernel, tail.kernel.plan.view, _is_left(tail)
    rows = kernel.request.body.parameters[tail.operands.index(tail.handed)]
    if rows not in kernel.dot.operands or not (is_left or tail.sums_rows):
        return False
    matrix = view.lhs if is_left else view.rhs
    walks, height = (matrix.outer, matrix.depth), view.m
    if tail.sums_rows:
        walks, height = (matrix.depth, matrix.outer), view.k
    strides = *matrix.batch, *(walk.stride for walk in walks)
    # Blocks need not end where runs of terms do.
    is_divisible = kernel.plan.packs_lhs or view.lhs.depth.is_single
    return height == m and matrix.is_strided and is_divisible and strides == row_major_strides((*view.batch, m, n))


def _packing_again_ns(plan: DotPlan) -> float:
    """Time to pack a right operand for every block of rows but the first."""
    if not (plan.packs_rhs or plan.shares_panels) or plan.kept_parts or plan.in_steps:
        return 0.0
    view, is_direct = plan.view, plan.numbers.is_direct(plan.numbers.rhs)
    cycles = operand_cycles(view.rhs, view.n, view.k, plan.lanes, is_direct=is_direct)
    return (plan.row_units - 1) * view.batch_count * cycles / MULTIPLY_ADDS_PER_NS


def _even(m: int, most: int, step: int) -> int:
    """Rows of blocks of about one size, none above `most`, multiples of a step unless one block has all."""
    blocks = -(-m // (most // step * step))
    return min(m, -(-m // (blocks * step)) * step)


def _with_rows(kernel: DotKernel, rows: int) -> DotKernel:
    """The kernel whose pieces have so many rows, and all terms."""
    plan = replace(kernel.plan, unit_rows=rows, overlaps=False, keeps_sums=False)
    plan = replace(plan, part_depth=plan.part_depth * plan.parts)
    return dot_kernel(kernel.request, kernel.dot, plan)
