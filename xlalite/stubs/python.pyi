# Written by `python -m pytest tests/test_public_names.py --bless` from the tables of names.

from xlalite.stubs import python_client as _python_client, python_ops as _python_ops

client = _python_client
ops = _python_ops
