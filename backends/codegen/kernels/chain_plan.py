"""Which computations are chains: what in them is a first product, what rows, and what a product of rows."""

from __future__ import annotations

from collections.abc import Sequence

from xlalite.backends.codegen.kernels.chain import ChainKernel, Head, Part, Rows, Tail
from xlalite.backends.codegen.kernels.chain_blocks import WholeChain, sums_rows
from xlalite.backends.codegen.kernels.collapse import collapse
from xlalite.backends.codegen.kernels.dot.kernel import DotKernel, plan_dot_kernel
from xlalite.backends.codegen.kernels.estimate import kernel_work
from xlalite.backends.codegen.kernels.kernel import Declined, KernelRequest
from xlalite.backends.codegen.kernels.row import RowKernel, plan_row
from xlalite.backends.codegen.llvm import TargetInfo
from xlalite.hlo.building.create import create
from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.traversal import reachable
from xlalite.hlo.ops.structural import ParameterAttrs
from xlalite.hlo.records import dataclass
from xlalite.passes.fusion.kernel_shape import KernelKind, KernelShape, kernel_shapes, results_of


@dataclass(frozen=True, slots=True)
class _Structure:
    """What is what in the body of a chain.

    Attributes:
        heads: The products that rows are made of.
        rows: What tails, and others, need of the rows.
        tails: The products of rows.
        handed: The rows that each of them has for an operand.
        ends: The result that each of them is needed for.
    """

    heads: tuple[HloInstruction, ...]
    rows: tuple[HloInstruction, ...]
    tails: tuple[HloInstruction, ...]
    handed: tuple[HloInstruction, ...]
    ends: tuple[HloInstruction, ...]


def plan_chain(request: KernelRequest, shape: KernelShape) -> ChainKernel | Declined:
    """The kernel that computes products, rows made of their results, and products of those."""
    if request.in_place:
        return Declined("a result lies in the memory of an operand")
    found = _structure(request.body)
    if isinstance(found, Declined):
        return found
    for head in found.heads:
        if (declined := why_not_in_blocks(head, request.target)) is not None:
            return declined
    parts: list[Part] = []
    for title, roots, known, kind in (
        *(("a first product", (head,), (), KernelKind.DOT) for head in found.heads),
        ("the rows", found.rows, found.heads, KernelKind.ROW),
        *(("a second product", (end,), found.rows, KernelKind.DOT) for end in found.ends),
    ):
        part = _planned(request, roots, known, kind)
        if isinstance(part, Declined):
            return Declined(f"{title}: {part.reason}")
        parts.append(part)
    count = len(found.heads)
    heads = tuple(Head(one.operands, one.results, one.work, _product(one), None) for one in parts[:count])
    tails = tuple(
        Tail(one.operands, one.results, one.work, _product(one), handed, sums_rows(dot, handed), None)
        for one, dot, handed in zip(parts[count + 1 :], found.tails, found.handed, strict=True)
    )
    rows = parts[count]
    assert isinstance(rows.kernel, RowKernel), "planned as rows"
    return WholeChain(request, heads, Rows(rows.operands, rows.results, rows.work, rows.kernel), tails).in_blocks()


def why_not_in_blocks(product: HloInstruction, target: TargetInfo) -> Declined | None:
    """Why the result of a chain's first product may as well be whole in memory, which its size alone says."""
    if product.shape.size_bytes <= target.cache_bytes[1]:
        return Declined("what is handed on stays in the second cache anyway")
    return None


def _structure(body: HloComputation) -> _Structure | Declined:
    level: dict[HloInstruction, int] = {}
    for instruction in body.post_order():
        is_product = instruction.opcode == "dot"
        level[instruction] = max((level[operand] for operand in instruction.operands), default=0) + is_product
    heads, tails = ([one for one in level if one.opcode == "dot" and level[one] == number] for number in (1, 2))
    if not tails or max(level.values()) > 2:
        return Declined("the products are not of two kinds, of which one is made of the results of the other")
    ends: list[HloInstruction] = []
    handed: list[HloInstruction] = []
    for tail in tails:
        made = [operand for operand in tail.operands if level[operand] == 1]
        own = [one for one in results_of(body) if tail in reachable((one,), lambda one: one.operands)]
        if len(made) != 1 or len(own) != 1:
            return Declined("a second product has two operands made of the first ones' results, or gives several")
        handed += made
        ends += own
    rows = dict.fromkeys((*handed, *(result for result in results_of(body) if level[result] < 2)))
    if any(one in heads or not level[one] for one in rows):
        return Declined("what is handed on, or given, are no rows made of the first products' results")
    return _Structure(tuple(heads), tuple(rows), tuple(tails), tuple(handed), tuple(ends))


def _planned(
    request: KernelRequest, roots: Sequence[HloInstruction], known: Sequence[HloInstruction], kind: KernelKind
) -> Part | Declined:
    """What computes instructions of the chain's body from its parameters and from what is known."""
    body = HloComputation(roots[0].name)
    inner: dict[HloInstruction, HloInstruction] = {}
    operands: list[HloInstruction] = []
    needed = set(reachable(roots, lambda one: () if one in known else one.operands))
    for instruction in request.body.post_order():
        if instruction not in needed:
            continue
        if instruction in known or instruction.opcode == "parameter":
            attrs = ParameterAttrs(len(operands))
            copy = create("parameter", (), attrs, shape=instruction.shape, name=instruction.name)
            operands.append(instruction)
        else:
            copy = instruction.clone([inner[operand] for operand in instruction.operands])
        inner[instruction] = body.add(copy)
    given = [inner[root] for root in roots]
    body.set_root(given[0] if len(given) == 1 else body.add(create("tuple", given)))
    own = KernelRequest(collapse(body), target=request.target)
    shape = next((one for one in kernel_shapes(own.body) if one.kind is kind), None)
    if shape is None:
        return Declined(f"not of the shape of the kind {kind.value}")
    is_dot = kind is KernelKind.DOT
    kernel = plan_dot_kernel(own, shape, in_blocks=bool(known)) if is_dot else plan_row(own, shape)
    if isinstance(kernel, Declined):
        return kernel
    return Part(tuple(operands), tuple(roots), kernel_work(own.body, shape), kernel)


def _product(part: Part) -> DotKernel:
    assert isinstance(part.kernel, DotKernel), "planned as a product"
    return part.kernel
