"""Kernels for linear algebra: a panel of neighbouring columns at a time, row after row."""
