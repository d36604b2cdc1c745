"""Functions of mathematics beyond the elementary ones, as scipy knows them."""

import numpy as np
import scipy.special as sp
import scipy.stats as st
from ops.cases.case import gradient, value

from xlalite.ops.functions import raw_ops as R, special as s
from xlalite.ops.helpers.constant import constant
from xlalite.ops.helpers.node import node

F = np.float32
WIDE = np.array([-3.7, -0.4, 0.1, 0.5, 1.0, 2.0, 5.5, 30.0, 200.0])
POSITIVE = np.array([0.05, 0.5, 1.0, 2.5, 7.0, 40.0, 150.0])
OTHER = np.array([0.3, 0.01, 1.5, 2.0, 11.0, 37.0, 149.0])
UNIT = np.array([1e-20, 1e-5, 0.1, 0.5, 0.75, 0.999, 1 - 1e-12])
COMPLEX = np.array([1 + 2j, -3 + 0.5j, -1 - 1j], np.complex64)
INTS = np.int32([0, 1, -1, 255, -(2**31)])

VALUES = [
    value("Lgamma", s.lgamma, WIDE, expected=sp.gammaln, tolerance=1e-12),
    value("Digamma", s.digamma, WIDE, expected=sp.digamma, tolerance=1e-12),
    value("Erfc", s.erfc, WIDE, expected=sp.erfc, tolerance=1e-13),
    value("Erfinv", s.erfinv, 2 * UNIT - 1, expected=sp.erfinv, tolerance=1e-9),
    value("Ndtri", s.ndtri, np.r_[0.0, UNIT, 1.0], expected=sp.ndtri, tolerance=1e-9),
    value("Ndtri of f32", s.ndtri, F(UNIT[:6]), expected=sp.ndtri, tolerance=1e-6),
    value("BesselI0e", s.bessel_i0e, np.r_[WIDE, -90, 0, 8, 8.001], expected=sp.i0e, tolerance=1e-15),
    value("BesselI1e", s.bessel_i1e, np.r_[WIDE, -90, 0, 8, 8.001], expected=sp.i1e, tolerance=1e-15),
    value("Mul bessel_i0", s.bessel_i0, WIDE[:7], expected=sp.i0, tolerance=1e-14),
    value("Mul bessel_i1", s.bessel_i1, WIDE[:7], expected=sp.i1, tolerance=1e-14),
    value("Igamma", s.igamma, np.r_[POSITIVE, 1, 2], np.r_[OTHER, 0, np.inf], expected=sp.gammainc, tolerance=1e-12),
    value("Igamma of f32", s.igamma, F(POSITIVE), F(OTHER), expected=sp.gammainc, tolerance=1e-6),
    value("Igammac", s.igammac, np.r_[POSITIVE, 1, 2], np.r_[OTHER, 0, np.inf], expected=sp.gammaincc, tolerance=1e-12),
    value("Igamma out of range", s.igamma, np.array([-1.0, 1.0]), np.array([1.0, -1.0]), expected=sp.gammainc),
    value(
        "IgammaGradA",
        lambda a, x: node("IgammaGradA", [a, x]),
        POSITIVE[:5],
        OTHER[:5],
        expected=lambda a, x: (sp.gammainc(a + 1e-5, x) - sp.gammainc(a - 1e-5, x)) / 2e-5,
        tolerance=1e-8,
    ),
    value(
        "RandomGammaGrad",
        lambda a, x: R.RandomGammaGrad(alpha=a, sample=x),
        POSITIVE[1:],
        OTHER[1:],
        expected=lambda a, x: -(sp.gammainc(a + 1e-5, x) - sp.gammainc(a - 1e-5, x)) / 2e-5 / st.gamma(a).pdf(x),
        tolerance=1e-6,
    ),
    value(
        "Betainc",
        lambda a, b, x: s.betainc(a, b, x),
        POSITIVE,
        OTHER,
        np.array([0.2, 0.9, 0.5, 0.0, 1.0, 0.52, 0.5]),
        expected=sp.betainc,
        tolerance=1e-12,
    ),
    value(
        "Betainc with a scalar",
        lambda a, x: s.betainc(a, constant(2.0, np.float64), x),
        POSITIVE,
        UNIT,
        expected=lambda a, x: sp.betainc(a, 2.0, x),
        tolerance=1e-12,
    ),
    value("Zeta", s.zeta, np.array([1.5, 2.0, 7.0]), np.array([0.5, 3.0, 20.0]), expected=sp.zeta, tolerance=1e-12),
    value(
        "Polygamma",
        s.polygamma,
        np.array([1.0, 2.0, 3.0]),
        np.array([0.5, 3.0, 20.0]),
        expected=lambda n, x: np.array([sp.polygamma(int(i), each) for i, each in zip(n, x, strict=True)]),
        tolerance=1e-12,
    ),
    value("Asinh", s.asinh, WIDE, expected=np.arcsinh, tolerance=1e-13),
    value("Acosh", s.acosh, POSITIVE + 1, expected=np.arccosh, tolerance=1e-13),
    value("Atanh", s.atanh, UNIT - 0.3, expected=np.arctanh, tolerance=1e-13),
    value("Xdivy", s.xdivy, F([0, 0, 2]), F([0, np.nan, 4]), expected=lambda x, y: F([0, 0, 0.5])),
    value("Xlog1py", s.xlog1py, F([0, 2]), F([-1, 3]), expected=lambda x, y: F([0, 2 * np.log(4)])),
    value("MulNoNan", s.multiply_no_nan, F([np.inf, 2]), F([0, 3]), expected=lambda x, y: F([0, 6])),
    value("NextAfter", s.nextafter, F([1, 0, -1, 2]), F([2, -1, -1, 1]), expected=np.nextafter, tolerance=0),
    value(
        "PopulationCount",
        s.population_count,
        INTS,
        expected=lambda x: np.uint8([bin(int(each) & 0xFFFFFFFF).count("1") for each in x]),
    ),
    value("Complex", s.complex, F([1, 2]), F([3, -4]), expected=lambda x, y: x + 1j * y),
    value("Angle", s.angle, COMPLEX, expected=np.angle),
    value("SelectV2 angle of real numbers", s.angle, F([1, -2, 0]), expected=np.angle),
    value(
        "ApproximateEqual",
        lambda x, y: s.approximate_equal(x, y, 0.1),
        F([1, 2, 3]),
        F([1.05, 2.2, 3]),
        expected=lambda x, y: np.array([True, False, True]),
    ),
    value("CheckNumerics", lambda x: s.check_numerics(x, "fine"), F([1, 2]), expected=lambda x: x),
    value(
        "ClipByValue",
        lambda x: node("ClipByValue", [x, constant(F(-1)), constant(F([0.5, 1, 2]))]),
        F([[-3, 0.2, 9], [3, 0, -1]]),
        expected=lambda x: np.clip(x, -1, F([0.5, 1, 2])),
    ),
    value("SqrtGrad", lambda y, d: node("SqrtGrad", [y, d]), F([2, 4]), F([1, 3]), expected=lambda y, d: d / 2 / y),
    value("RsqrtGrad", lambda y, d: node("RsqrtGrad", [y, d]), F([2]), F([3]), expected=lambda y, d: -d / 2 * y**3),
    *(
        value(name, lambda y, d, name=name: node(name, [y, d]), F([2]), F([3]), expected=lambda y, d: -d * y * y)
        for name in ("ReciprocalGrad", "InvGrad")
    ),
    value("AddV2 polyval", lambda x: s.polyval([3, -2, 1], x), WIDE, expected=lambda x: np.polyval([3, -2, 1], x)),
    value("Sub lbeta", s.lbeta, POSITIVE[:4].reshape(2, 2), expected=lambda x: sp.betaln(x[:, 0], x[:, 1])),
    value("Cast saturating", lambda x: s.saturate_cast(x, np.uint8), F([-5, 3.7, 300]), expected=lambda x: [0, 3, 255]),
    value("Invert", s.invert, INTS, expected=np.invert),
]

X = np.array([0.3, 1.2, 2.5, 0.7])
Y = np.array([0.9, 0.4, 1.7, 3.0])
U = np.array([0.2, 0.35, 0.6, 0.85])

GRADIENTS = [
    *(
        gradient(name, lambda x, name=name: node(name, [x]), X)
        for name in ("Lgamma", "Digamma", "Erfc", "BesselI0e", "BesselI1e", "Asinh")
    ),
    gradient("Acosh", s.acosh, X + 1),
    *(gradient(name, lambda x, name=name: node(name, [x]), U) for name in ("Erfinv", "Ndtri", "Atanh")),
    gradient("Igamma", s.igamma, X, Y),
    gradient("Igammac", s.igammac, X, Y),
    gradient("Betainc", lambda x: s.betainc(constant(X), constant(Y), x), U),
    gradient("Zeta", lambda q: s.zeta(constant(X + 1.5), q), Y),
    gradient("Polygamma", lambda x: s.polygamma(constant([1.0, 2.0, 1.0, 3.0], np.float64), x), Y),
    gradient("Xdivy", s.xdivy, X, Y),
    gradient("Xlog1py", s.xlog1py, X, Y),
    gradient("MulNoNan", s.multiply_no_nan, X, Y),
    gradient("Complex", lambda x, y: node("Real", [s.complex(x, y) * (2.0 - 1.0j)]), X, Y),
    gradient("Angle", lambda x, y: s.angle(s.complex(x, y)), X, Y),
    gradient("CheckNumerics", lambda x: s.check_numerics(x, ""), X),
    gradient("ClipByValue", lambda x, low: node("ClipByValue", [x, low, constant(2.0, np.float64)]), X, np.array(0.5)),
    *(
        gradient(name, lambda y, dy, name=name: node(name, [y, dy]), X, Y)
        for name in ("SqrtGrad", "RsqrtGrad", "ReciprocalGrad", "InvGrad")
    ),
]
