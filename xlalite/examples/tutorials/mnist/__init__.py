"""Handwritten digits: MNIST from its files, or the smaller set that ships in the package."""
