# Written by `python -m pytest tests/test_public_names.py --bless` from the tables of names.

from xlalite.ops.functions.special import check_numerics as check_numerics

