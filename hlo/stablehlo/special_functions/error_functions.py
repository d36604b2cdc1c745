"""The complement and the inverse of the error function, composed of HLO operations.

The coefficients are Chebyshev interpolants of the exact functions, computed with 40 digits.
"""

from __future__ import annotations

import math

from xlalite.hlo.building.builder import Handle
from xlalite.hlo.ops import OPS
from xlalite.hlo.stablehlo.special_functions.series import chebyshev, polynomial, unary
from xlalite.hlo.types.dtype import DType

# fmt: off
_INVERSE_ERF_F32_MIDDLE = (
    2.9825978809489806, 0.60175630341083, -0.009170559500080926, -0.004962635326766425, 0.0009153796700079642,
    -3.889562757083e-06, -2.4202599404944085e-05, 3.2665715925842334e-06, 2.7758889803736634e-07,
    -1.3023363013643025e-07,
)
_INVERSE_ERF_F32_TAIL = (
    6.010924187168304, 0.9320642376575098, 0.004355856418451008, -0.0014851872672652666, 0.00044132757228209474,
    -0.00011197573199975994, 2.0180233975095964e-05, -1.2390029704062238e-06, -6.064250213585029e-07,
    2.2846761267263305e-07, -3.136556636491887e-08,
)
_INVERSE_ERF_MIDDLE = (
    3.260844197891865, 0.7315674456742257, -0.021235032142504585, -0.0065808875424494635, 0.0019488711426908524,
    -0.00014158343386374536, -4.9292864636180004e-05, 1.4752887929042498e-05, -6.111918603258194e-07,
    -5.106997335480761e-07, 1.159027723297735e-07, 1.4907998843194937e-09, -5.244776785530681e-09,
    8.51790549109762e-10, 7.917020592973908e-11, -5.0994281737154326e-11, 5.436227530231317e-12,
    1.292282189751795e-12, -4.656064719044143e-13, 2.4256976317675218e-14, 1.6403697972051414e-14,
    -3.94956069090147e-15, -3.9036001761416307e-17, 1.83129083527959e-16,
)
_INVERSE_ERF_TAIL = (
    6.171489688046204, 0.7524837268921277, 0.0019842584172056767, -0.000534561900101604, 0.0001302806745904227,
    -2.943377534710642e-05, 5.231051543788091e-06, -5.385189635316591e-07, -2.922686732135409e-08,
    2.3903569231251557e-08, -4.411209869554094e-09, 2.2053622855049448e-10, 8.095391923249493e-11,
    -2.1642011149793333e-11, 1.9364299208504444e-12, 1.9183918173325102e-13, -8.245551635697369e-14,
    1.0402388222104601e-14, 2.9484539267546553e-17, -2.4669496593190295e-16,
)
_INVERSE_ERF_FAR_TAIL = (
    9.80072347775736, 1.0606099459404281, -4.7553553480943684e-05, -6.575473998320703e-05, 1.1954464593415613e-05,
    -1.621367947252389e-06, 1.9876291181659057e-07, -2.4375799091760216e-08, 3.456660629820519e-09,
    -6.531992299707707e-10, 1.555965925191801e-10, -3.893213021323713e-11, 9.026132135656793e-12,
    -1.8100332718878167e-12, 2.9255407963971536e-13, -3.189723436808647e-14, 5.716041001701004e-17,
    1.0108026018691186e-15, -2.879487147676625e-16,
)
_NORMAL_TAIL = (
    33.421808426285054, 10.73833018590546, -0.009068483452077846, 0.0021223953611413885, -0.0004555281517989224,
    7.549945928085657e-05, -8.65913987257902e-07, -7.694056259649247e-06, 5.241090909670542e-06,
    -2.6562325731841403e-06, 1.1968222661156217e-06, -5.061148066563598e-07, 2.0567694534825144e-07,
    -8.132100699678403e-08, 3.150907647669588e-08, -1.2018833068389723e-08, 4.526900545846136e-09,
    -1.6872017141117369e-09, 6.231834410995301e-10, -2.2836403341081077e-10, 8.309205911600897e-11,
    -3.003857066124749e-11, 1.0794138695150555e-11, -3.8568704997811435e-12, 1.3706559006549118e-12,
    -4.845536533134269e-13, 1.7041961848430026e-13, -5.963199094327311e-14, 2.0759348171348915e-14,
    -7.189366767000834e-15, 2.476582645208282e-15, -8.484354614794874e-16, 2.8899047262963095e-16,
    -9.783610213176705e-17, 3.289955547086017e-17, -1.097564992288708e-17, 3.628855235118432e-18,
)
_SCALED_ERFC = (
    1.0048897448717597, 0.10154483535843371, -0.05768339229678923, 0.024237709449058793, -0.008204071965732489,
    0.002291766000293965, -0.0005269054493939598, 9.692913239522505e-05, -1.3184586147281824e-05,
    9.92925495556396e-07, 5.7121627982638896e-08, -2.7400548737933737e-08, 2.649383938086013e-09,
    2.5819964587185955e-10, -8.868657275921298e-11, 2.528029783256022e-12, 2.0072972700119133e-12,
    -2.1766513345846882e-13, -4.0747261654152396e-14, 8.431523596127419e-15, 8.148983739312376e-16,
    -2.8694643538758147e-16, -1.7537262436234143e-17,
)
_ERFC_OVER_DISTANCE = (
    -0.4151074974205947, 0.4151074974205947, -0.13836916580686492, -0.06918458290343245, 0.06918458290343649,
    -0.004612305526894896, -0.0151547181603163, 0.004777030724207771, 0.0018851884026355572, -0.0012262875757321908,
    -8.552510295135686e-05, 0.0002000549821865365, -1.8695563040411965e-05, -2.3703972705124004e-05,
    5.269557909741601e-06, 2.0502999720612972e-06,
)
_SHORT_SCALED_ERFC = (
    0.2820950397545651, 0.2820881649389216, 0.2468993356161377, 0.17610128273654072, 0.08204524382617112,
    0.01820105938076808, -0.18331041315431526, 0.38348234470301357, -1.0080755838374456, 1.5903432951289034,
    -1.4376210462223165, 0.7657147929130721, -0.2272559089638358, 0.02929239319175297,
)
# fmt: on
_POLE = 3.75
_SPLIT = 0.5
_CANCELLING = 0.75
_NEAR_ONE = 1.25
_AT_ONE = (0.15729920705028513, -2.954563826510312e-18)  # erfc(1), and what rounding takes from it
_LARGEST = 30.0  # exp(-30^2) is 0 in f64
_LAST_OF_F32 = 10.1  # erfc is 0 in f32 from here on


def erfc(x: Handle) -> Handle:
    """1 - erf(x) of f64.

    Beyond 0.75, where that would cancel, a polynomial around 1, and from 1.25 on exp(-x^2) * g(x) / x, where g hardly
    varies.
    """
    builder = x.builder
    magnitude = builder.op("minimum", builder.match(unary("abs", x), _LARGEST))
    low = (_SPLIT - _POLE) / (_SPLIT + _POLE)
    place = (magnitude - _POLE) / (magnitude + _POLE)
    scaled = chebyshev((place - (low + 1) / 2) * (2 / (1 - low)), _SCALED_ERFC) / magnitude
    # The square of the upper half of the digits is exact, so exp sees no rounding error of the square.
    upper = builder.op("reduce-precision", (magnitude,), OPS["reduce-precision"].attrs(11, 24))
    rest = (upper - magnitude) * (upper + magnitude)
    tail = unary("exponential", -(upper * upper)) * scaled
    tail = tail + tail * (polynomial(rest, (1.0, 0.5, 1.0 / 6.0)) * rest)  # exp(rest), whose argument is below 0.0001
    distance = magnitude - 1.0
    near = polynomial(distance, _ERFC_OVER_DISTANCE) * distance + _AT_ONE[1] + _AT_ONE[0]
    tail = builder.select(builder.compare(magnitude, _NEAR_ONE, "LT"), near, tail)
    outside = builder.select(builder.compare(x, 0.0, "LT"), 2.0 - tail, tail)
    return builder.select(builder.compare(magnitude, _CANCELLING, "LT"), 1.0 - unary("erf", x), outside)


def short_erfc(x: Handle) -> Handle:
    """The same of f64 numbers to 2^-35, for narrower types: exp(-x^2) * t * g(t) with t = 1 / (1 + |x| / 2)."""
    builder = x.builder
    magnitude = builder.op("minimum", builder.match(unary("abs", x), _LAST_OF_F32))
    place = 1.0 / (magnitude * 0.5 + 1.0)
    tail = unary("exponential", -(magnitude * magnitude)) * (polynomial(place, _SHORT_SCALED_ERFC) * place)
    return builder.select(builder.compare(x, 0.0, "LT"), 2.0 - tail, tail)


def erf_inv(x: Handle) -> Handle:
    """The y with erf(y) = x, for f32 and f64: x * f(w), w = -log(1 - x^2)."""
    return _from_logarithm(x, -unary("log", (1.0 - x) * (1.0 + x)))


def normal_quantile(p: Handle) -> Handle:
    """The y below which a standard normal number lies with probability p, of f64: sqrt(2) erf_inv(2 p - 1)."""
    builder = p.builder
    x = p * 2.0 - 1.0
    w = -unary("log", (1.0 - p) * p * 4.0)
    root = unary("sqrt", w)
    far = _piece(root, 6.1, 27.5, _NORMAL_TAIL) * unary("sign", x)
    found = builder.select(builder.compare(root, 6.1, "LT"), _from_logarithm(x, w), far) * math.sqrt(2.0)
    found = builder.select(builder.compare(p, 0.0, "EQ"), p - math.inf, found)
    found = builder.select(builder.compare(p, 1.0, "EQ"), p * math.inf, found)
    inside = builder.compare(p, 0.0, "GE") & builder.compare(p, 1.0, "LE")
    return builder.select(inside, found, p * math.nan)


def _from_logarithm(x: Handle, w: Handle) -> Handle:
    """The inverse of the error function, given -log(1 - x^2) as well, which may be known where x is almost 1."""
    builder = x.builder
    root = unary("sqrt", w)
    if x.dtype is DType.F32:
        factor = _piece(w, 0.0, 5.0, _INVERSE_ERF_F32_MIDDLE)
        tail = _piece(root, math.sqrt(5.0), 4.1, _INVERSE_ERF_F32_TAIL)
        factor = builder.select(builder.compare(w, 5.0, "LT"), factor, tail)
    else:
        factor = _piece(w, 0.0, 6.25, _INVERSE_ERF_MIDDLE)
        tail = _piece(root, 2.5, 4.0, _INVERSE_ERF_TAIL)
        far = _piece(root, 4.0, 6.1, _INVERSE_ERF_FAR_TAIL)
        tail = builder.select(builder.compare(w, 16.0, "LT"), tail, far)
        factor = builder.select(builder.compare(w, 6.25, "LT"), factor, tail)
    at_end = builder.compare(w, math.inf, "EQ")
    return builder.select(at_end, x * math.inf, x * factor)


def _piece(x: Handle, low: float, high: float, coefficients: tuple[float, ...]) -> Handle:
    """The interpolant on [low, high]."""
    return chebyshev((x - (low + high) / 2) * (2 / (high - low)), coefficients)
