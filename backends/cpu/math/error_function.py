"""erf: an odd polynomial near 0, and 1 - 2**-g(x) beyond, where g is a polynomial for -log2(erfc(x)).

The coefficients are best approximations made by tests/backends/math/minimax.py; errors are relative to erf.
"""

from xlalite.backends.cpu.llvm import F32, F64, FunctionBuilder, Value
from xlalite.backends.cpu.math.exponential import emit_exp2
from xlalite.backends.cpu.math.floating import SINGLE, at_most, power_of_low_bits, with_sign_of
from xlalite.backends.cpu.math.polynomial import estrin, horner

# The end of the first interval, and where erf is 1 to the last place.
_MIDDLE = {F32: 0.875, F64: 1.4375}
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
    # on [0, 1.4375], error 2^-56.6
    F64: (
        0.1283791670955126,
        -0.3761263890318387,
        0.11283791670958489,
        -0.026866170645584057,
        0.005223977628939012,
        -0.0008548327195844173,
        0.00012055338777399053,
        -1.49257890499282e-05,
        1.6464544581140263e-06,
        -1.6397585992464457e-07,
        1.5119161973805116e-08,
        -1.4602247510876135e-09,
        2.2258419699596528e-10,
        -5.92638277592876e-11,
        1.5833700435322214e-11,
        -3.0749632640482603e-12,
        3.6709471588578494e-13,
        -2.0113725742028367e-14,
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
    # on [1.4375, 5.95], error 2^-58.6
    F64: (
        1.6278990034290246,
        0.9185083206807679,
        0.14805933441431723,
        -0.02714184119606372,
        -0.0009820072041934655,
        0.003190885801015605,
        -0.0014619571835679827,
        0.0004152633996772955,
        -7.858475625219996e-05,
        8.241118264299002e-06,
        2.6878765160709045e-07,
        -2.7905502138537294e-07,
        5.371026925612088e-08,
        -5.689736859547282e-09,
        3.392273092083657e-10,
        -8.964676913693616e-12,
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
        small = fb.fma(size, estrin(fb, square, _SMALL[F64]), size)
        exponent = fb.fmul(bounded, estrin(fb, bounded, _LARGE[F64]))
        complement = emit_exp2(fb, fb.fneg(exponent))
    else:
        small = fb.fma(size, horner(fb, square, _SMALL[F32]), size)
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
