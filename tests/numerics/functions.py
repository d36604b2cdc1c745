"""The functions, each with its exact values by mpmath and its values in extended precision for many numbers at once."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import llvmlite.binding as llvm
import mpmath
import numpy as np

MP = mpmath.mp.clone()


@dataclass(frozen=True)
class Function:
    """One function.

    Attributes:
        exact: The value by mpmath; None where there is none.
        extended: The values of long doubles as long doubles, or their complex kin.
        arity: Number of operands.
        dialect: What the function belongs to, "hlo" or "chlo".
        bits: The precision that mpmath needs: for angles of any size that of the largest number, for zeta very much.
    """

    exact: Callable[..., mpmath.mpf | mpmath.mpc | None]
    extended: Callable[..., np.ndarray] | None = None
    arity: int = 1
    dialect: str = "hlo"
    bits: int = 320


LONG = 2400


@cache
def _library_loop(name: str) -> Callable[[int, int, int], None]:
    """The C library's function of a long double, applied to arrays: NumPy has not all of them."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    text = f"""
        declare x86_fp80 @{name}(x86_fp80)
        define void @apply(ptr %x, ptr %y, i64 %count) {{
        entry:
          br label %next
        next:
          %i = phi i64 [0, %entry], [%more, %next]
          %from = getelementptr [16 x i8], ptr %x, i64 %i
          %to = getelementptr [16 x i8], ptr %y, i64 %i
          %number = load x86_fp80, ptr %from
          %value = call x86_fp80 @{name}(x86_fp80 %number)
          store x86_fp80 %value, ptr %to
          %more = add i64 %i, 1
          %done = icmp eq i64 %more, %count
          br i1 %done, label %end, label %next
        end:
          ret void
        }}"""
    lljit = llvm.create_lljit_compiler()
    llvm.load_library_permanently("libm.so.6")
    builder = llvm.JITLibraryBuilder().add_current_process().add_ir(text).export_symbol("apply")
    library = builder.link(lljit, name)
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)(library["apply"])
    function.owners = lljit, library  # type: ignore[attr-defined]
    return function


def _library(name: str) -> Callable[[np.ndarray], np.ndarray]:
    def apply(x: np.ndarray) -> np.ndarray:
        x = np.ascontiguousarray(x)
        result = np.empty_like(x)
        _library_loop(name)(x.ctypes.data, result.ctypes.data, x.size)
        return result

    return apply


def _logistic(x: mpmath.mpf) -> mpmath.mpf:
    e = MP.exp(-abs(x))
    return (e if x < 0 else 1) / (1 + e)


def _extended_logistic(x: np.ndarray) -> np.ndarray:
    e = np.exp(-np.abs(x))
    return np.where(x < 0, e, 1) / (1 + e)


def _remainder(x: mpmath.mpf, y: mpmath.mpf) -> mpmath.mpf | None:
    return MP.sign(x) * (abs(x) - MP.floor(abs(x) / abs(y)) * abs(y)) if y else None


def _extended_zeta(s: np.ndarray, q: np.ndarray) -> np.ndarray:
    """The sum over (q + k)^-s by Euler and Maclaurin: 32 terms, and 20 of Bernoulli's numbers for the others."""
    first = np.longdouble(32)
    total = sum((q + np.longdouble(k)) ** -s for k in range(31, -1, -1))
    x = q + first
    power = x**-s
    rest = power * x / (s - 1) + power / 2
    factor = s * power / x
    for j in range(1, 21):
        rest += factor * _extended_number(MP.bernoulli(2 * j) / MP.factorial(2 * j))
        factor = factor * (s + (2 * j - 1)) * (s + 2 * j) / (x * x)
    return np.where((s > 1) & (q > 0), total + rest, np.nan)


def _extended_polygamma(n: np.ndarray, x: np.ndarray) -> np.ndarray:
    """By zeta; the digamma function by its recurrence and asymptotic series, near its root by mpmath."""
    size = np.array([_extended_number(MP.factorial(int(k))) for k in n]) * _extended_zeta(n + 1, x)
    result = np.where(n % 2 == 0, -size, size)
    far = x + np.longdouble(32)
    digamma = np.log(far) - 1 / (2 * far) - sum(1 / (x + np.longdouble(k)) for k in range(31, -1, -1))
    for j in range(1, 21):
        digamma -= _extended_number(MP.bernoulli(2 * j) / (2 * j)) / far ** (2 * j)
    for i in np.flatnonzero((n == 0) & (abs(x - 1.4616321) < 0.05)):
        digamma[i] = _extended_number(MP.digamma(MP.mpf(float(x[i]))))
    return np.where(n == 0, digamma, result)


def _extended_number(value: mpmath.mpf) -> np.longdouble:
    high = float(value)
    return np.longdouble(high) + np.longdouble(float(value - high))


REAL: dict[str, Function] = {
    "exponential": Function(MP.exp, np.exp),
    "exponential-minus-one": Function(MP.expm1, np.expm1),
    "log": Function(lambda x: MP.log(x) if x > 0 else None, np.log),
    "log-plus-one": Function(lambda x: MP.log1p(x) if x > -1 else None, np.log1p),
    "tanh": Function(MP.tanh, np.tanh),
    "logistic": Function(_logistic, _extended_logistic),
    "sinh": Function(MP.sinh, np.sinh),
    "cosh": Function(MP.cosh, np.cosh),
    "erf": Function(MP.erf, _library("erfl")),
    "sine": Function(MP.sin, np.sin, bits=LONG),
    "cosine": Function(MP.cos, np.cos, bits=LONG),
    "tan": Function(MP.tan, np.tan, bits=LONG),
    "asin": Function(lambda x: MP.asin(x) if abs(x) <= 1 else None, np.arcsin),
    "acos": Function(lambda x: MP.acos(x) if abs(x) <= 1 else None, np.arccos),
    "atan": Function(MP.atan, np.arctan),
    "asinh": Function(MP.asinh, np.arcsinh),
    "acosh": Function(lambda x: MP.acosh(x) if x >= 1 else None, np.arccosh),
    "atanh": Function(lambda x: MP.atanh(x) if abs(x) < 1 else None, np.arctanh),
    "sqrt": Function(lambda x: MP.sqrt(x) if x >= 0 else None, np.sqrt),
    "rsqrt": Function(lambda x: 1 / MP.sqrt(x) if x > 0 else None, lambda x: 1 / np.sqrt(x)),
    "cbrt": Function(lambda x: MP.sign(x) * MP.cbrt(abs(x)), np.cbrt),
    "power": Function(lambda x, y: MP.power(x, y) if x > 0 else None, np.power, 2),
    "atan2": Function(lambda y, x: MP.atan2(y, x), np.arctan2, 2),
    "remainder": Function(_remainder, np.fmod, 2, bits=LONG),
}
SPECIAL: dict[str, Function] = {
    "erfc": Function(MP.erfc, _library("erfcl"), dialect="chlo", bits=200),
    "erf_inv": Function(lambda x: MP.erfinv(x) if abs(x) <= 1 else None, dialect="chlo", bits=200),
    "lgamma": Function(lambda x: MP.re(MP.loggamma(x)), _library("lgammal"), dialect="chlo", bits=200),
    "digamma": Function(MP.digamma, dialect="chlo", bits=200),
    "bessel_i1e": Function(lambda x: MP.besseli(1, x) * MP.exp(-abs(x)), dialect="chlo", bits=200),
    "zeta": Function(lambda s, q: MP.zeta(s, q) if s > 1 and q > 0 else None, _extended_zeta, 2, "chlo", 900),
    "polygamma": Function(
        lambda n, x: MP.polygamma(int(n), x) if n >= 0 else None, _extended_polygamma, 2, "chlo", 900
    ),
}


def _extended_log1p(z: np.ndarray) -> np.ndarray:
    x, y = z.real, z.imag
    result = np.empty_like(z)
    # A small logarithm of the modulus may have lost digits, but beside an angle that is larger.
    near_zero = np.log1p(x * (2 + x) + y * y) / 2
    result.real = np.where((np.abs(x) < 0.25) & (np.abs(y) < 0.5), near_zero, np.log(np.hypot(1 + x, y)))
    result.imag = np.arctan2(y, 1 + x)
    return result


def _extended_complex_logistic(z: np.ndarray) -> np.ndarray:
    # Near the poles 1 + e^z is m + 2 e^a sin^2((b - pi) / 2) and so on, which does not cancel: see the code.
    size = np.abs(z.real)
    e, m, b = np.exp(-size), -np.expm1(-size), z.imag
    square = 2 * np.cos(b / 2) ** 2
    divisor = m * m + 2 * e * square
    result = np.empty_like(z)
    result.real = np.where(z.real < 0, e * (square - m), m + e * square) / divisor
    result.imag = e * np.sin(b) / divisor
    return result


COMPLEX: dict[str, Function] = {
    "abs": Function(lambda z: MP.mpc(abs(z)), np.abs, bits=LONG),
    "sign": Function(lambda z: z / abs(z), lambda z: z / np.abs(z), bits=LONG),
    "sqrt": Function(MP.sqrt, np.sqrt, bits=LONG),
    "rsqrt": Function(lambda z: 1 / MP.sqrt(z), lambda z: 1 / np.sqrt(z), bits=LONG),
    "exponential": Function(MP.exp, np.exp, bits=LONG),
    "exponential-minus-one": Function(MP.expm1, np.expm1, bits=LONG),
    "logistic": Function(lambda z: 1 / (1 + MP.exp(-z)), _extended_complex_logistic, bits=LONG),
    "log": Function(MP.log, np.log, bits=LONG),
    "log-plus-one": Function(lambda z: MP.log(1 + z), _extended_log1p, bits=LONG),
    "sinh": Function(MP.sinh, np.sinh, bits=LONG),
    "cosh": Function(MP.cosh, np.cosh, bits=LONG),
    "tanh": Function(MP.tanh, np.tanh, bits=LONG),
    "sine": Function(MP.sin, np.sin, bits=LONG),
    "cosine": Function(MP.cos, np.cos, bits=LONG),
    "tan": Function(MP.tan, np.tan, bits=LONG),
    "asinh": Function(MP.asinh, np.arcsinh, bits=LONG),
    "acosh": Function(MP.acosh, np.arccosh, bits=LONG),
    "atanh": Function(MP.atanh, np.arctanh, bits=LONG),
    "asin": Function(MP.asin, np.arcsin, bits=LONG),
    "acos": Function(MP.acos, np.arccos, bits=LONG),
    "atan": Function(MP.atan, np.arctan, bits=LONG),
    "divide": Function(lambda x, y: x / y, np.divide, 2, bits=LONG),
    "power": Function(lambda x, y: MP.exp(y * MP.log(x)), None, 2, bits=LONG),
    "atan2": Function(lambda y, x: -1j * MP.log((x + 1j * y) / MP.sqrt(x * x + y * y)), None, 2, bits=LONG),
}


def functions_of(type_: str) -> dict[str, Function]:
    """The functions of a type, named as HLO writes it."""
    return COMPLEX if type_ in ("c64", "c128") else REAL | SPECIAL
