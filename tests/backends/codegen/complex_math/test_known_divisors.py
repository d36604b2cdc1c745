"""Quotients of complex numbers by a real constant are the quotients by a number that is not known."""

import numpy as np
import pytest

from xlalite.hlo import parse

NUMBERS = (0.0, -0.0, 1.0, -3.5, 5e-324, -1e-310, 1.7e308, np.inf, -np.inf, np.nan)


@pytest.mark.parametrize("divisor", [3.0, -0.5, 1e300, -1e-300])
def test_each_part_is_divided(compile_text, divisor):
    x = np.array([complex(a, b) for a in NUMBERS for b in NUMBERS])
    text = f"""HloModule m
ENTRY e {{
  x = c128[{x.size}] parameter(0)
  y = c128[] parameter(1)
  ys = c128[{x.size}] broadcast(y), dimensions={{}}
  q = c128[{x.size}] divide(x, ys)
  c = c128[] constant(({divisor!r}, 0))
  cs = c128[{x.size}] broadcast(c), dimensions={{}}
  r = c128[{x.size}] divide(x, cs)
  ROOT both = tuple(q, r)
}}"""
    by_unknown, by_known = compile_text(parse(text))(x, np.complex128(divisor))
    # Beside a large part an unknown divisor loses what is that small.
    tiny = np.array([0 < min(abs(z.real), abs(z.imag)) < 1e-300 for z in x])
    for known, unknown in ((by_known.real, by_unknown.real), (by_known.imag, by_unknown.imag)):
        assert np.array_equal(np.isnan(known), np.isnan(unknown))
        known, unknown = known[~tiny], unknown[~tiny]
        has_sign = ~np.isnan(known)
        assert np.array_equal(np.signbit(known)[has_sign], np.signbit(unknown)[has_sign])
        usual = np.isfinite(unknown) & (np.abs(unknown) > 1e-300)
        np.testing.assert_array_almost_equal_nulp(known[usual], unknown[usual], 1)
        assert np.array_equal(known[np.isinf(unknown)], unknown[np.isinf(unknown)])
    finite = np.isfinite(x) & (x.real != 0) & (x.imag != 0)
    with np.errstate(over="ignore", under="ignore"):
        assert np.array_equal(by_known.real[finite], x.real[finite] / divisor)
        assert np.array_equal(by_known.imag[finite], x.imag[finite] / divisor)
