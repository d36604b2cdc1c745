# Written by `python -m pytest tests/test_public_names.py --bless` from the tables of names.

from xlalite.ops.functions.special import (
    bitwise_and as bitwise_and, bitwise_or as bitwise_or, bitwise_xor as bitwise_xor, invert as invert,
    left_shift as left_shift, population_count as population_count, right_shift as right_shift
)

