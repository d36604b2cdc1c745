"""Convolutions in groups of few features: how they are walked, their tiles, and the kernel around these."""
