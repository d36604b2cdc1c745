"""Elementary functions as LLVM IR, for scalars and vectors of any lane count, accurate over the whole range.

`emit_math(fb, name, *args)` is the only entry; names are those of HLO's opcodes and the table is `MATH_FUNCTIONS`.
Results are within 2 ulp (f32) and 1 ulp (f64) of the correctly rounded ones, denormals and special values included
(docs/numerics.md). On one machine a lane's bits depend neither on the lane count nor on the other lanes. How the
polynomials were made: tests/backends/codegen/math/minimax.py.
"""

from xlalite.backends.codegen.math.functions import MATH_FUNCTIONS, MathFunction, emit_math

__all__ = ["MATH_FUNCTIONS", "MathFunction", "emit_math"]
