"""Declaring operations: the forms that most of them share.

What has an effect, or more to say about its inputs, is registered as an `OpSpec` in full.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from xlalite.framework.graph.dtypes import FLOATING_TYPES, INTEGER_TYPES, NUMERIC_TYPES, DType, complex64, complex128
from xlalite.framework.graph.op_spec import (
    GradientFunction,
    HostKernel,
    InferFunction,
    LowerFunction,
    OpGroup,
    OpSpec,
    register,
)
from xlalite.framework.graph.operation import Operation
from xlalite.framework.meaning.lowering import LoweringContext
from xlalite.hlo.building.builder import Builder, Handle
from xlalite.hlo.building.common import broadcast_pair
from xlalite.ops.helpers.gradient_rules import OneOutputGradient, of_one_output
from xlalite.ops.helpers.shape_rules import broadcasting, unchanged

COMPLEX_TYPES: Final[frozenset[DType]] = frozenset({complex64, complex128})
FLOAT_OR_COMPLEX: Final[frozenset[DType]] = FLOATING_TYPES | COMPLEX_TYPES
REAL_TYPES: Final[frozenset[DType]] = FLOATING_TYPES | INTEGER_TYPES

ELEMENTWISE, REDUCTION, ELEMENTWISE_WITH_REDUCTION, MOVEMENT, BATCH_NORM, SORTING, WINDOW_WITH_ELEMENTWISE = OpGroup

BuildUnary = Callable[[Builder, Handle], Handle]
BuildBinary = Callable[[Builder, Handle, Handle], Handle]


def declare(
    name: str,
    inputs: tuple[str, ...],
    infer: InferFunction,
    lower: LowerFunction,
    gradient: OneOutputGradient | None,
    group: OpGroup | None,
    *,
    attrs: tuple[str, ...] = (),
    defaults: Mapping[str, object] = MappingProxyType({}),
    constant_inputs: tuple[str, ...] = (),
) -> None:
    """Declares an operation without effects whose first output alone is differentiable, or none."""
    gradients = None if gradient is None else of_one_output(gradient)
    declare_outputs(
        name, inputs, infer, lower, gradients, group, attrs=attrs, defaults=defaults, constant_inputs=constant_inputs
    )


def declare_outputs(
    name: str,
    inputs: tuple[str, ...],
    infer: InferFunction,
    lower: LowerFunction,
    gradient: GradientFunction | None,
    group: OpGroup | None,
    *,
    attrs: tuple[str, ...] = (),
    defaults: Mapping[str, object] = MappingProxyType({}),
    constant_inputs: tuple[str, ...] = (),
    host_kernel: HostKernel | None = None,
    passes_on: bool = False,
    gradient_passes_on: bool = False,
) -> None:
    """Declares an operation without effects whose gradient looks at all outputs."""
    register(
        OpSpec(
            name,
            infer,
            gradient=gradient,
            group=group,
            inputs=inputs,
            attrs=attrs,
            defaults=defaults,
            lower=lower,
            host_kernel=host_kernel,
            constant_inputs=constant_inputs,
            passes_on=passes_on,
            gradient_passes_on=gradient_passes_on,
        )
    )


def declare_unary(
    name: str,
    build: BuildUnary | str,
    gradient: OneOutputGradient | None,
    allowed: Collection[DType] = FLOAT_OR_COMPLEX,
    result: DType | None = None,
) -> None:
    """Declares a function of single elements, by its HLO or by the name of its HLO operation."""

    def lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
        return [ctx.builder.op(build, inputs) if isinstance(build, str) else build(ctx.builder, inputs[0])]

    declare(name, ("x",), unchanged(allowed, result), lower, gradient, ELEMENTWISE)


def declare_binary(
    name: str,
    build: BuildBinary | str,
    gradient: OneOutputGradient | None,
    allowed: Collection[DType] = NUMERIC_TYPES,
    result: DType | None = None,
) -> None:
    """Declares a function of two elements each, by its HLO or by the name of its HLO operation; sizes broadcast."""

    def lower(ctx: LoweringContext, op: Operation, inputs: tuple[Handle, ...]) -> Sequence[Handle]:
        pair = broadcast_pair(ctx.builder, inputs[0], inputs[1])
        return [ctx.builder.op(build, pair) if isinstance(build, str) else build(ctx.builder, *pair)]

    declare(name, ("x", "y"), broadcasting(allowed, result), lower, gradient, ELEMENTWISE)


def declare_on_host(
    name: str,
    inputs: tuple[str, ...],
    infer: InferFunction,
    kernel: HostKernel,
    why_host: str,
    *,
    attrs: tuple[str, ...] = (),
    defaults: Mapping[str, object] = MappingProxyType({}),
    is_stateful: bool = False,
) -> None:
    """Declares an operation that is never compiled and has no gradient."""
    register(
        OpSpec(
            name,
            infer,
            gradient=None,
            group=None,
            inputs=inputs,
            attrs=attrs,
            defaults=defaults,
            host_kernel=kernel,
            is_stateful=is_stateful,
            why_host=why_host,
        )
    )
