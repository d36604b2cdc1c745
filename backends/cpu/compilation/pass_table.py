"""Every pass that runs for the CPU by its name; importing this imports them all."""

from __future__ import annotations

from xlalite.backends.codegen.kernels.dot.feature_order import ConvolutionFeatureOrder
from xlalite.backends.codegen.kernels.dot.feature_padding import ConvolutionFeaturePadding
from xlalite.backends.codegen.kernels.dot.operand_fusion import DotOperandFusion
from xlalite.backends.codegen.kernels.dot.operand_packing import DotOperandPacking
from xlalite.backends.codegen.kernels.dot.operand_types import DotOperandTypes
from xlalite.backends.codegen.kernels.dot.pad_fusion import ConvolutionPadFusion
from xlalite.backends.codegen.kernels.dot.result_order import ConvolutionResultOrder
from xlalite.backends.codegen.kernels.product_chaining import ProductChaining
from xlalite.backends.codegen.kernels.product_rematerialization import ProductRematerialization
from xlalite.passes.core.base import HloPass
from xlalite.passes.registry import PASSES

CPU_PASSES: dict[str, type[HloPass]] = {
    **PASSES,
    **{
        hlo_pass.name: hlo_pass
        for hlo_pass in (
            ConvolutionFeatureOrder,
            ConvolutionFeaturePadding,
            ConvolutionPadFusion,
            ConvolutionResultOrder,
            DotOperandFusion,
            DotOperandPacking,
            DotOperandTypes,
            ProductChaining,
            ProductRematerialization,
        )
    },
}
"""Every pass by its name: those that know no target, and those that do, which are made for this machine by default."""
