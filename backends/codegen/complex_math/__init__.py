"""Functions of complex numbers as code: pairs of registers in, a pair (or a register) out.

One formula for each function, in f64 and good for the whole plane: parts are scaled by powers of two where squares
would leave the range, sums that may cancel are carried as pairs of floats, and the values at zero, infinity and NaN are
those of the C standard's Annex G (what it leaves open follows from the definition by other functions, or from limits).
f32 parts are computed in f64 and rounded once; there the squares cannot leave the range.
"""

from xlalite.backends.codegen.complex_math.functions import COMPLEX_FUNCTIONS, emit_complex

__all__ = ["COMPLEX_FUNCTIONS", "emit_complex"]
