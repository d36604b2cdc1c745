"""The arithmetic of element types, on NumPy arrays: what the evaluators of elementwise operations compute with.

Knows element types and arrays; knows no instructions. Every function takes arrays of any sizes that broadcast.
"""
