# Written by `python -m pytest tests/test_public_names.py --bless` from the tables of names.

from xlalite.framework.graph.jit_scope import jit_scope as jit_scope
from xlalite.ops.functions.defined_functions import compile as compile

