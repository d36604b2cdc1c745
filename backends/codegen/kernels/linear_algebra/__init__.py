"""Kernels for linear systems: a panel of neighbouring columns at a time, row after row."""
