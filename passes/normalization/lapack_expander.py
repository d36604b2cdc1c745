"""Expresses those custom calls of LAPACK that are operations of HLO."""

from __future__ import annotations

from typing import ClassVar

from xlalite.hlo.building.builder import Builder, Handle
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ops.linear_algebra import Transpose, TriangularSolveAttrs
from xlalite.hlo.ops.rules.lapack_calls import lapack_call
from xlalite.hlo.records import dataclass
from xlalite.passes.rewriting.expander import OpExpander

_TRANSPOSES = {"N": Transpose.NO_TRANSPOSE, "T": Transpose.TRANSPOSE, "C": Transpose.ADJOINT}


@dataclass(frozen=True, slots=True)
class LapackExpander(OpExpander):
    """custom-call(a, b), custom_call_target="lapack_strsm_ffi" -> triangular-solve(a, b).

    A call whose operands, options or results are not those of the routine stays: running it says what is wrong. The
    other routines give more than an operation of HLO; kernels are made for the calls themselves.
    """

    name: ClassVar[str] = "lapack-expander"
    opcodes: ClassVar[frozenset[str]] = frozenset({"custom-call"})

    def may_expand(self, instruction: HloInstruction) -> bool:
        """Whether it is a call for a triangular system."""
        asked = lapack_call(instruction)
        return asked is not None and asked.routine == "trsm"

    def expand(self, builder: Builder, instruction: HloInstruction, operands: tuple[Handle, ...]) -> Handle:
        """Builds the triangular-solve."""
        asked = lapack_call(instruction)
        assert asked is not None, "only such calls are expanded"
        attrs = TriangularSolveAttrs(
            left_side=asked.letter("side") == "L",
            lower=asked.letter("uplo") == "L",
            unit_diagonal=asked.letter("diag") == "U",
            transpose_a=_TRANSPOSES[asked.letter("trans_x")],
        )
        return builder.op("triangular-solve", operands, attrs)
