"""Rounding to quantised numbers, beside the nearest of all numbers there are."""

from typing import Any

import numpy as np
from ops.cases.case import ValueCase, value

from xlalite.ops.functions import quantization as q
from xlalite.ops.helpers.node import operation

F = np.float32
X = F([[-7.3, -1.07, -0.02, 0.0], [0.31, 1.49, 2.52, 9.0]])
G = F([[1, 2, 4, 8], [16, 32, 64, 128]])
LOW, HIGH = F([-1.0, -0.4, 0.5, -2.0]), F([2.0, 1.1, 3.0, -0.1])


def numbers(low: float, high: float, bits: int, narrow: bool) -> np.ndarray:
    """The quantised numbers: evenly spaced, with the range moved so that 0 is one of them."""
    count = 2**bits - 1 - narrow
    step = (high - low) / count
    below = np.clip(np.floor(-low / step + 0.5), 0, count)
    return (np.arange(count + 1) - below) * step


def nearest(x: np.ndarray, levels: np.ndarray) -> np.ndarray:
    return levels[np.abs(x[..., None] - levels).argmin(-1)]


def fake(x: np.ndarray, low: Any = -6.0, high: Any = 6.0, bits: int = 8, narrow: bool = False) -> np.ndarray:
    return nearest(x.astype(np.float64), numbers(float(low), float(high), bits, narrow)).astype(F)


def fake_grads(g: np.ndarray, x: np.ndarray, low: Any, high: Any) -> tuple[np.ndarray, ...]:
    levels = numbers(float(low), float(high), 8, False)
    below, above = x < levels[0], x > levels[-1]
    return np.where(below | above, 0, g), (g * below).sum(), (g * above).sum()


def by_channel(function: Any, *arrays: np.ndarray) -> Any:
    columns = [function(*(each[..., i] for each in arrays)) for i in range(arrays[0].shape[-1])]
    return np.stack(columns, -1)


def rounded(x: np.ndarray, low: float, high: float, signed: bool, bits: int = 8, narrow: bool = False) -> np.ndarray:
    lowest, highest = (narrow - 2 ** (bits - 1), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    units = [end / limit for end, limit in ((low, lowest), (high, highest)) if end * limit > 0]
    return np.rint(x / max(units)) * max(units)


def quantize(**options: Any) -> Any:
    return lambda x, *ends: q.quantize_and_dequantize(x, *ends, **options)


ENDS = (F(-1.5), F(2.0))
VALUES: list[ValueCase] = [
    value("FakeQuantWithMinMaxArgs", q.fake_quant_with_min_max_args, X, expected=fake),
    value(
        "FakeQuantWithMinMaxArgs narrow",
        lambda x: q.fake_quant_with_min_max_args(x, -0.3, 2, 4, True),
        X,
        expected=lambda x: fake(x, -0.3, 2, 4, True),
    ),
    value(
        "FakeQuantWithMinMaxArgsGradient",
        lambda g, x: q.fake_quant_with_min_max_args_gradient(g, x, -1, 2),
        G,
        X,
        expected=lambda g, x: fake_grads(g, x, -1, 2)[0],
    ),
    value("FakeQuantWithMinMaxVars", q.fake_quant_with_min_max_vars, X, *ENDS, expected=fake),
    value(
        "FakeQuantWithMinMaxVars beside 0",
        q.fake_quant_with_min_max_vars,
        X,
        F(0.5),
        F(2.5),
        expected=fake,
    ),
    value(
        "FakeQuantWithMinMaxVars of no range",
        q.fake_quant_with_min_max_vars,
        X,
        F(0),
        F(0),
        expected=lambda x, *_: 0 * x,
    ),
    *(
        value(
            f"FakeQuantWithMinMaxVarsGradient output {output}",
            lambda *t, output=output: q.fake_quant_with_min_max_vars_gradient(*t)[output],
            G,
            X,
            *ENDS,
            expected=lambda *t, output=output: F(fake_grads(*t)[output]),
        )
        for output in range(3)
    ),
    value(
        "FakeQuantWithMinMaxVarsPerChannel",
        q.fake_quant_with_min_max_vars_per_channel,
        X,
        LOW,
        HIGH,
        expected=lambda *t: by_channel(fake, *t),
    ),
    *(
        value(
            f"FakeQuantWithMinMaxVarsPerChannelGradient output {output}",
            lambda *t, output=output: q.fake_quant_with_min_max_vars_per_channel_gradient(*t)[output],
            G,
            X,
            LOW,
            HIGH,
            expected=lambda *t, output=output: F(by_channel(lambda *column: fake_grads(*column)[output], *t)),
        )
        for output in range(3)
    ),
    value(
        "QuantizeAndDequantizeV2",
        quantize(),
        X,
        F(0),
        F(0),
        expected=lambda x, *_: rounded(x, x.min(), x.max(), True),
    ),
    value(
        "QuantizeAndDequantizeV2 in a range",
        quantize(range_given=True, signed_input=False, num_bits=4),
        X,
        F(0),
        F(2),
        expected=lambda x, low, high: np.clip(rounded(x, low, high, False, 4), 0, high),
    ),
    value(
        "QuantizeAndDequantizeV2 along a dimension",
        quantize(axis=1, narrow_range=True),
        X,
        LOW,
        HIGH,
        expected=lambda x, *_: by_channel(lambda c: rounded(c, c.min(), c.max(), True, narrow=True), x),
    ),
    value(
        "QuantizeAndDequantizeV2 half up",
        quantize(range_given=True, num_bits=3, round_mode="HALF_UP"),
        F([-1.5, -0.5, 0.5, 1.5]),
        F(-4),
        F(3),
        expected=lambda x, *_: F([-1, 0, 1, 2]),
    ),
    value(
        "QuantizeAndDequantizeV3",
        lambda x, *ends: q.quantize_and_dequantize_v3(x, *ends, 8, range_given=False),
        X,
        F(0),
        F(0),
        expected=lambda x, *_: rounded(x, x.min(), x.max(), True),
    ),
    value(
        "QuantizeAndDequantizeV4",
        q.quantize_and_dequantize_v2,
        X,
        F(0),
        F(0),
        expected=lambda x, *_: rounded(x, x.min(), x.max(), True),
    ),
    *(
        value(
            f"QuantizeAndDequantizeV4Grad output {output}",
            lambda *t, output=output: operation("QuantizeAndDequantizeV4Grad", t, {"axis": -1}).outputs[output],
            G,
            X,
            *ENDS,
            expected=lambda g, x, low, high, output=output: (
                np.where((x < low) | (x > high), 0, g),
                (g * (x < low)).sum(),
                (g * (x > high)).sum(),
            )[output],
        )
        for output in range(3)
    ),
    value(
        "QuantizeAndDequantizeV4Grad along a dimension",
        lambda *t: operation("QuantizeAndDequantizeV4Grad", t, {"axis": 1}).outputs[1],
        G,
        X,
        LOW,
        HIGH,
        expected=lambda g, x, low, high: (g * (x < low)).sum(0),
    ),
]
