"""Functions that compute parts of an operand where they would be packed: loops around tiles do nothing but call."""

from __future__ import annotations

from functools import partial

from xlalite.backends.codegen.kernels.ahead import Ahead
from xlalite.backends.codegen.kernels.dot.computed_operand import ComputedOperand
from xlalite.backends.codegen.kernels.dot.part_packing import PartPacker
from xlalite.backends.codegen.kernels.dot.product import Product
from xlalite.backends.codegen.kernels.kernel import KernelRequest
from xlalite.backends.codegen.kernels.kernel_entry import enter_kernel
from xlalite.backends.codegen.kernels.scalars import Scalar, Scalars
from xlalite.backends.codegen.llvm import I8, I64, PTR, VOID, Function, ModuleBuilder

_FAR_BYTES = 256
"""How far ahead arrays are fetched that operands are computed of, a few columns of each row at a time."""


def computing_function(
    module: ModuleBuilder, name: str, request: KernelRequest, product: Product, number: int
) -> Function:
    """`void compute(ptr args, i64 product, i64 first, i64 extent, i64 term, i64 terms, ptr scratch)`.

    Args:
        module: Where the function is added.
        name: Its symbol.
        request: What the kernel computes.
        product: The product in it.
        number: Of the operand; `first` and `extent` are rows, or columns, of it.
    """
    plan, layout, view = product.plan, product.layout, product.plan.view
    types, kinds = (PTR, *(I64,) * 5, PTR), ("noalias readonly", *("",) * 5, "noalias")
    fb = module.function(name, VOID, types, parameter_attributes=kinds, linkage="hidden")
    fb.is_strength_reduced = True
    entry = enter_kernel(fb, request, ahead=Ahead(_FAR_BYTES))
    _, batch, first, extent, term, terms, scratch = fb.parameters
    is_left = (number == 0) is not view.exchanged
    unit, total = (plan.unit_rows, view.m) if is_left else (plan.unit_columns, view.n)
    outer: tuple[Scalar, Scalar] = first, unit if total % unit == 0 and not plan.in_strips else extent
    depth: tuple[Scalar, Scalar] = term, terms
    if plan.parts == plan.depth_units == 1:
        depth = 0, view.k
    elif plan.depth_units > 1 and view.k % plan.unit_depth == 0:
        depth = term, plan.unit_depth
    math = Scalars(fb)
    packer = PartPacker(module, fb, math, lambda function: function, plan, partial(math.address, I8, scratch))
    computed = ComputedOperand(entry, product.body, product.dot, number, plan.numbers, plan.lanes)
    compute = partial(computed.compute, batch if view.batch_count > 1 else 0)
    packer.pack(layout.lhs if is_left else layout.rhs, compute, outer, depth)
    fb.ret()
    return fb.function
