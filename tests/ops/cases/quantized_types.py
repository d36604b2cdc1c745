"""Integers of quantised types, beside what they stand for in f64."""

from typing import Any

import numpy as np
from ops.cases.case import ValueCase, value

import xlalite as tf
from xlalite.framework.graph.dtypes import DType

F = np.float32
ENDS = (F(-1.5), F(2.0))
ROWS = (F([-1.0, -0.4, 0.0, -2.0]), F([2.0, 1.1, 3.0, 0.5]))
X = F([[-7.3, -1.07, -0.021, 0.0], [0.31, 1.49, 0.252, -0.13], [np.inf, -np.inf, 0.123, 9.0]])


def spacing(dtype: DType, low: Any, high: Any, mode: str, narrow: bool) -> tuple[Any, Any, Any]:
    """The unit, and an integer with the number that it stands for."""
    least, most = int(dtype.min) + narrow, int(dtype.max)
    low, high = np.float64(low), np.float64(high)
    if mode == "SCALED":
        return np.maximum(high / most, low / least if least else 0), 0, 0
    unit = (high - low) / (most - least)
    return unit, least, np.round(low / unit) * unit if mode == "MIN_FIRST" else low


def back(dtype: DType, mode: str, *ends: np.ndarray, axis: int | None = None, narrow: bool = False) -> ValueCase:
    """Integers all over the type become numbers."""
    x = np.linspace(int(dtype.min), int(dtype.max), 64).astype(dtype.numpy_dtype).reshape(16, 4)

    def expected(x: np.ndarray, low: Any, high: Any) -> np.ndarray:
        unit, origin, start = spacing(dtype, low, high, mode, narrow)
        return F((x.astype(np.float64) - origin) * unit + start)

    return value(
        f"Dequantize {dtype.name} {mode} {axis} {narrow}",
        lambda x, *t: tf.dequantize(tf.bitcast(x, dtype), *t, mode, axis=axis, narrow_range=narrow),
        x,
        *(ends or ENDS),
        expected=expected,
    )


def there(
    dtype: DType, mode: str, *ends: np.ndarray, axis: int | None = None, narrow: bool = False, **options: Any
) -> ValueCase:
    """Numbers inside and outside the range become integers."""

    def expected(x: np.ndarray, low: Any, high: Any) -> np.ndarray:
        unit, origin, start = spacing(dtype, low, high, mode, narrow)
        nearest = np.round((x.astype(np.float64) - start) / unit) + origin
        return np.clip(nearest, int(dtype.min) + narrow, int(dtype.max)).astype(dtype.numpy_dtype)

    def made(x: Any, *t: Any) -> Any:
        integers, _, _ = tf.quantize(x, *t, dtype, mode, axis=axis, narrow_range=narrow, **options)
        return tf.bitcast(integers, dtype.numpy_dtype)

    return value(f"QuantizeV2 {dtype.name} {mode} {axis} {narrow}", made, X, *(ends or ENDS), expected=expected)


def taken_range(low: float, high: float, expected: tuple[float, float], **options: Any) -> ValueCase:
    """The range that numbers are quantised for."""
    return value(
        f"QuantizeV2 range of {low} to {high} {options.get('mode')}",
        lambda x, *t: tf.stack(tf.quantize(x, *t, tf.qint8, **options)[1:]),
        X,
        F(low),
        F(high),
        expected=lambda *_: F(expected),
    )


VALUES: list[ValueCase] = [
    *(
        back(t, m)
        for t in (tf.qint8, tf.quint8, tf.qint16, tf.quint16)
        for m in ("MIN_COMBINED", "MIN_FIRST", "SCALED")
    ),
    *(back(tf.qint8, mode, *ROWS, axis=1) for mode in ("MIN_COMBINED", "MIN_FIRST", "SCALED")),
    back(tf.qint8, "SCALED", narrow=True),
    back(tf.qint32, "SCALED"),
    back(tf.qint32, "MIN_COMBINED"),
    *(there(t, m) for t in (tf.qint8, tf.quint8, tf.qint16) for m in ("MIN_COMBINED", "MIN_FIRST", "SCALED")),
    *(there(tf.qint8, mode, *ROWS, axis=1) for mode in ("MIN_COMBINED", "SCALED")),
    there(tf.qint8, "SCALED", narrow=True, round_mode="HALF_TO_EVEN"),
    taken_range(0.5, 2.0, (0.0, 2.0)),
    taken_range(-4.0, -2.0, (-4.0, 0.0)),
    taken_range(0.0, 0.0, (0.0, 0.01)),
    taken_range(-3.0, -3.0, (-3.0, 0.0), ensure_minimum_range=0.5),
    taken_range(-1.0, 2.54, (-2.56, 2.54), mode="SCALED"),
]
