"""The modified Bessel function of order one, composed of HLO operations in f64."""

from __future__ import annotations

from xlalite.hlo.building.builder import Handle
from xlalite.hlo.stablehlo.special_functions.series import chebyshev, polynomial, unary

# I1(x) / x in powers of x^2 up to 64, an interpolant in Chebyshev nodes computed with 250 bits.
# fmt: off
_NEAR = (
    0.5, 0.0625, 0.002604166666666667, 5.425347222222213e-05, 6.781684027778059e-07, 5.651403356476159e-09,
    3.363930569400616e-11, 1.5017547178772907e-13, 5.214426141593576e-16, 1.44845153192735e-18,
    3.291941257933586e-21, 6.234584831530237e-24, 9.994221689502959e-27, 1.3687885297024527e-29,
    1.6696390898900487e-32, 1.47105648860311e-35, 2.4334892279361836e-38,
)
_FAR = (
    0.7785762350182801, -0.009761097491361469, -0.00011058893876262371, -3.882564808877691e-06,
    -2.512236237870205e-07, -2.6314688468895596e-08, -3.835380385963838e-09, -5.589743462200551e-10,
    -1.897495812311076e-11, 3.252603582976256e-11, 1.41258074370035e-11, 2.035628543760237e-12,
    -7.198551772408705e-13, -4.0835511148954486e-13, -2.1015418051057356e-14, 4.272439979436422e-14,
    1.0420277352714633e-14, -3.814403436600766e-15, -1.880354416018677e-15, 3.3081987651801765e-16,
    2.962632491776324e-16, -3.209560323246358e-17, -4.65027153086413e-17,
)
# fmt: on


def bessel_i1e(x: Handle) -> Handle:
    """exp(-|x|) I1(x), an odd function: exp(-|x|) x f(x^2) up to 8, with positive terms; f(1/x) / sqrt(x) beyond."""
    builder = x.builder
    magnitude = unary("abs", x)
    near = polynomial(x * x, _NEAR) * x * unary("exponential", -magnitude)
    far = chebyshev(16.0 / magnitude - 1.0, _FAR) / unary("sqrt", magnitude) * unary("sign", x)
    return builder.select(builder.compare(magnitude, 8.0, "LE"), near, far)
