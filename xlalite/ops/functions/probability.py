"""`tf.distributions.Normal`, and how far one distribution is from another."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from xlalite.framework.graph.dtypes import DType
from xlalite.ops.functions.array import concat, shape
from xlalite.ops.functions.math import erf, exp, log, square
from xlalite.ops.functions.random_ops import random_normal
from xlalite.ops.functions.special import erfinv
from xlalite.ops.helpers.constant import constant, convert_to_tensor
from xlalite.ops.helpers.promotion import promote


class Normal:
    """Normal distributions, one for each element of the means and standard deviations, broadcast."""

    def __init__(
        self, loc: Any, scale: Any, validate_args: bool = False, allow_nan_stats: bool = True, name: str = "Normal"
    ) -> None:
        """Means and standard deviations."""
        self.loc, self.scale = promote(loc, scale)
        self.name = name

    @property
    def dtype(self) -> DType:
        """Element type."""
        return self.loc.dtype

    def mean(self) -> Any:
        """The means."""
        return self.loc + 0 * self.scale

    mode = mean

    def stddev(self) -> Any:
        """The standard deviations."""
        return self.scale + 0 * self.loc

    def variance(self) -> Any:
        """Their squares."""
        return square(self.stddev())

    def entropy(self) -> Any:
        """`log(scale sqrt(2 pi e))`."""
        return log(self.stddev()) + 0.5 * math.log(2 * math.pi * math.e)

    def log_prob(self, value: Any) -> Any:
        """The logarithms of the densities."""
        return -0.5 * square(self._standard(value)) - log(self.scale) - 0.5 * math.log(2 * math.pi)

    def prob(self, value: Any) -> Any:
        """The densities."""
        return exp(self.log_prob(value))

    def cdf(self, value: Any) -> Any:
        """The probabilities of numbers up to `value`."""
        return 0.5 * (1 + erf(self._standard(value) / math.sqrt(2)))

    def quantile(self, value: Any) -> Any:
        """The numbers up to which the probability is `value`."""
        return self.loc + self.scale * math.sqrt(2) * erfinv(2 * convert_to_tensor(value, self.dtype) - 1)

    def sample(self, sample_shape: Any = (), seed: int | None = None, name: str | None = None) -> Any:
        """Random numbers of shape `[*sample_shape, *batch]`."""
        extra = np.ravel(np.asarray(sample_shape, np.int32))
        sizes = concat([constant(extra), shape(self.mean())], 0)
        return random_normal(sizes, dtype=self.dtype, seed=seed) * self.scale + self.loc

    def _standard(self, value: Any) -> Any:
        return (convert_to_tensor(value, self.dtype) - self.loc) / self.scale


def kl_divergence(
    distribution_a: Normal, distribution_b: Normal, allow_nan_stats: bool = True, name: str | None = None
) -> Any:
    """How far `b` is from `a`, `E_a[log a - log b]`."""
    a, b = distribution_a, distribution_b
    ratio = square(a.scale / b.scale)
    return 0.5 * (square((a.loc - b.loc) / b.scale) + ratio - 1 - log(ratio))
