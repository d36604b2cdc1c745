"""erf: an odd polynomial near 0, and 1 - 2**-g(x) beyond, where g is a polynomial for -log2(erfc(x)).

The coefficients are best approximations made by tests/backends/codegen/math/minimax.py; errors are relative to erf.
"""

from xlalite.backends.codegen.llvm import F32, F64, FunctionBuilder, Value
from xlalite.backends.codegen.math import double_double as dd
from xlalite.backends.codegen.math.exponential import exp2_of_pair
from xlalite.backends.codegen.math.floating import SINGLE, at_most, power_of_low_bits, with_sign_of
from xlalite.backends.codegen.math.polynomial import estrin, horner

# The end of the first interval, and where erf is 1 to the last place.
_MIDDLE = {F32: 0.875, F64: 1.09}
_LIMIT = {F32: 3.95, F64: 5.95}

# erf(x) / x - 1 in powers of x**2.
_SMALL = {
    # on [0, 0.875], error 2^-26.2
    F32: (
        0.12837915122509003,
        -0.3761253356933594,
        0.11282328516244888,
        -0.026787590235471725,
        0.005027015693485737,
        -0.000617822224739939,
    ),
    # on [0, 1.1], error 2^-56.7
    F64: (
        0.1283791670955126,
        -0.3761263890318389,
        0.11283791670959843,
        -0.026866170645875157,
        0.005223977632098427,
        -0.0008548327398189896,
        0.00012055347095359797,
        -1.4926019333319302e-05,
        1.6468947719548692e-06,
        -1.6456105345869705e-07,
        1.5651830975746885e-08,
        -1.7758855763795216e-09,
        3.2701291994861277e-10,
        -6.522273302199116e-11,
        6.964135633252061e-12,
    ),
}

# -log2(erfc(x)) / x in powers of x.
_LARGE = {
    # on [0.875, 3.95], error 2^-28.2
    F32: (
        1.6281181573867798,
        0.9170928597450256,
        0.1519334465265274,
        -0.033070158213377,
        0.004652919247746468,
        -0.0003105096984654665,
    ),
    # on [1, 5.95], error 2^-58.0
    F64: (
        1.6279069475260481,
        0.9184488810153191,
        0.14826696456020533,
        -0.02759149704649027,
        -0.0003058939571240668,
        0.0024419035280361418,
        -0.0008290432673489161,
        -1.4177046539810315e-06,
        0.0001377652209216459,
        -8.085020865796282e-05,
        2.9362313430517595e-05,
        -7.769741453349418e-06,
        1.5555268677632884e-06,
        -2.352150182909701e-07,
        2.6159902563173697e-08,
        -2.0235127571148764e-09,
        9.731955189479173e-11,
        -2.1915658514425284e-12,
    ),
}

# 2**r on [-1/2, 1/2], error 2^-23.0: erfc is below 0.22 where it is used.
_SHORT_EXP2 = (
    1.0000001192092896,
    0.6931473016738892,
    0.24022041261196136,
    0.05550278723239899,
    0.009678161703050137,
    0.001340168877504766,
)


def emit_erf(fb: FunctionBuilder, x: Value) -> Value:
    """The error function."""
    scalar = x.type.scalar
    size = fb.fabs(x)
    square = fb.fmul(x, x)
    bounded = at_most(fb, size, _LIMIT[scalar])
    if scalar is F64:
        small = fb.mul_add(size, estrin(fb, square, _SMALL[F64]), size)
        exponent, low = dd.two_product(fb, bounded, estrin(fb, bounded, _LARGE[F64]))
        complement = exp2_of_pair(fb, fb.fneg(exponent), fb.fneg(low))
    else:
        small = fb.mul_add(size, horner(fb, square, _SMALL[F32]), size)
        exponent = fb.fmul(bounded, horner(fb, bounded, _LARGE[F32]))
        complement = _short_exp2_of_minus(fb, exponent)
    large = fb.fsub(fb.constant(x.type, 1.0), complement)
    return with_sign_of(fb, fb.select(fb.fcmp("olt", size, _MIDDLE[scalar]), small, large), x)


def _short_exp2_of_minus(fb: FunctionBuilder, x: Value) -> Value:
    """2**-x for an f32 x in [0, 100] to 23 bits."""
    shifted = fb.fsub(fb.constant(x.type, SINGLE.rounder), x)
    n = fb.fsub(shifted, SINGLE.rounder)
    fraction = fb.fsub(fb.fneg(x), n)
    return fb.fmul(horner(fb, fraction, _SHORT_EXP2), power_of_low_bits(fb, shifted, SINGLE.bias))
