# Written by `python -m pytest tests/test_public_names.py --bless` from the tables of names.

from xlalite.ops.functions.array import reshape as reshape, reverse as reverse, roll as roll, tile as tile
from xlalite.ops.functions.selection import gather_nd as gather_nd, scatter_nd as scatter_nd

