"""Ufuncs of `scipy.special`, known by their names, so that scipy is not needed; of real numbers."""

from __future__ import annotations

import math as numbers
import sys
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from xlalite.framework.graph.dtypes import float32
from xlalite.framework.graph.tensor import Tensor
from xlalite.ops.functions import math, nn, special
from xlalite.ops.functions.array import ones_like, where_v2
from xlalite.tracing import ufunc_rules as rules

Rule = Callable[..., Any]


def special_ufunc(ufunc: np.ufunc) -> Rule | None:
    """The rule of a ufunc of scipy.special; None for any other, and for those that have none."""
    name = ufunc.__name__.removeprefix("_")
    module = sys.modules.get("scipy.special._ufuncs")
    return SPECIAL.get(name) if getattr(module, ufunc.__name__, None) is ufunc else None


def _gamma(x: Tensor) -> Any:
    return _sign_of_gamma(x) * math.exp(special.lgamma(x))


def _sign_of_gamma(x: Tensor) -> Any:
    """NaN at the poles, but for zeros, where it is the sign of the zero."""
    below = math.floor(x)
    is_even = math.equal(math.floormod(below, 2), 0)
    of_negative = where_v2(math.equal(below, x), np.nan, where_v2(is_even, 1.0, -1.0))
    return where_v2(math.less(x, 0), of_negative, rules.copysign(ones_like(x), x))


def _betaln(a: Tensor, b: Tensor) -> Any:
    return special.lgamma(a) + special.lgamma(b) - special.lgamma(a + b)


def _beta(a: Tensor, b: Tensor) -> Any:
    return _sign_of_gamma(a) * _sign_of_gamma(b) * _sign_of_gamma(a + b) * math.exp(_betaln(a, b))


def _logit(x: Tensor) -> Any:
    return where_v2(math.less(math.abs(x - 0.5), 0.2), 2 * special.atanh(2 * (x - 0.5)), math.log(x) - math.log1p(-x))


def _entr(x: Tensor) -> Any:
    return where_v2(math.less(x, 0), -np.inf, -math.xlogy(x, x))


def _rel_entr(x: Tensor, y: Tensor) -> Tensor:
    return _divergence(x, y, x * math.log(x / y), ones_like(x) * 0.0)


def _kl_div(x: Tensor, y: Tensor) -> Tensor:
    return _divergence(x, y, x * math.log(x / y) - x + y, y)


def _divergence(x: Tensor, y: Tensor, inside: Tensor, of_zero: Tensor) -> Tensor:
    is_edge = math.logical_and(math.equal(x, 0), math.greater_equal(y, 0))
    is_inside = math.logical_and(math.greater(x, 0), math.greater(y, 0))
    found = where_v2(is_inside, inside, where_v2(is_edge, of_zero, np.inf))
    return where_v2(math.logical_or(math.is_nan(x), math.is_nan(y)), np.nan, found)


def _keeping_nan(rule: Rule) -> Rule:
    """A product that is 0 where the first factor is, but for NaN."""
    return lambda x, y: where_v2(math.is_nan(y), y, rule(x, y))


def _gammaln(x: Tensor) -> Tensor:
    return where_v2(math.equal(x, -np.inf), x, special.lgamma(x))


def _psi(x: Tensor) -> Tensor:
    return where_v2(math.equal(x, 0), rules.copysign(ones_like(x), -x) * np.inf, special.digamma(x))


def _ndtr(x: Tensor) -> Any:
    return special.erfc(x * -numbers.sqrt(0.5)) / 2


def _log_ndtr(x: Tensor) -> Tensor:
    """Far below 0 by the asymptotic series of erfc (Abramowitz and Stegun, 7.1.23)."""
    far = math.minimum(x, -10.0 if x.dtype is float32 else -20.0)
    square = 1 / (far * far)
    series = 1 - square * (1 - square * (3 - square * (15 - 105 * square)))
    tail = -far * far / 2 - math.log(-far) - numbers.log(2 * numbers.pi) / 2 + math.log(series)
    middle = math.log(_ndtr(math.minimum(math.maximum(x, -30.0), 0.0)))
    upper = math.log1p(-_ndtr(-math.maximum(x, 0.0)))
    found = where_v2(math.less_equal(x, far), tail, where_v2(math.less(x, 0), middle, upper))
    return where_v2(math.is_nan(x), x, found)


def _huber(delta: Tensor, r: Tensor) -> Tensor:
    size = math.abs(r)
    found = where_v2(math.less_equal(size, delta), r * r / 2, delta * (size - delta / 2))
    return where_v2(math.less(delta, 0), np.inf, found)


def _pseudo_huber(delta: Tensor, r: Tensor) -> Tensor:
    ratio = r / delta
    found = delta * delta * math.expm1(math.log1p(ratio * ratio) / 2)
    is_flat = math.logical_or(math.equal(delta, 0), math.equal(r, 0))
    return where_v2(math.less(delta, 0), np.inf, where_v2(is_flat, 0.0, found))


def _boxcox(x: Tensor, power: Tensor) -> Tensor:
    return where_v2(math.equal(power, 0), math.log(x), math.expm1(power * math.log(x)) / power)


def _inv_boxcox(x: Tensor, power: Tensor) -> Tensor:
    return where_v2(math.equal(power, 0), math.exp(x), math.exp(math.log1p(power * x) / power))


SPECIAL: Mapping[str, Rule] = {
    "beta": _beta,
    "betainc": special.betainc,
    "betaln": _betaln,
    "boxcox": _boxcox,
    "cbrt": rules.cbrt,
    "entr": _entr,
    "erf": math.erf,
    "erfc": special.erfc,
    "erfcinv": lambda x: special.ndtri(x / 2) * -numbers.sqrt(0.5),
    "erfinv": special.erfinv,
    "exp2": rules.exp2,
    "expit": math.sigmoid,
    "expm1": math.expm1,
    "gamma": _gamma,
    "gammainc": special.igamma,
    "gammaincc": special.igammac,
    "gammaln": _gammaln,
    "huber": _huber,
    "i0": special.bessel_i0,
    "i0e": special.bessel_i0e,
    "i1": special.bessel_i1,
    "i1e": special.bessel_i1e,
    "inv_boxcox": _inv_boxcox,
    "kl_div": _kl_div,
    "log1p": math.log1p,
    "log_expit": nn.log_sigmoid,
    "log_ndtr": _log_ndtr,
    "logit": _logit,
    "ndtr": _ndtr,
    "ndtri": special.ndtri,
    "pseudo_huber": _pseudo_huber,
    "psi": _psi,
    "rel_entr": _rel_entr,
    "xlog1py": _keeping_nan(special.xlog1py),
    "xlogy": _keeping_nan(math.xlogy),
    "zeta": special.zeta,
}
"""The rules, by the names of the ufuncs; `digamma` is `psi`."""
