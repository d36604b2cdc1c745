# Written by `python -m pytest tests/test_public_names.py --bless` from the tables of names.

from xlalite.stubs import xla_experimental as _xla_experimental

experimental = _xla_experimental
