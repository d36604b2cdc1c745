"""All families of rules."""

from xlalite.tracing.functions import (  # noqa: F401  # importing them registers their rules
    creation,
    fourier,
    joining,
    linear_algebra,
    missing_values,
    ordering,
    padding,
    polynomials,
    products,
    questions,
    reductions,
    rounding,
    selection,
    shaping,
    signals,
    statistics,
)
