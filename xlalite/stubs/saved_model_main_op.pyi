# Written by `python -m pytest tests/test_public_names.py --bless` from the tables of names.

from xlalite.ops.training.saved_models import main_op as main_op, main_op_with_restore as main_op_with_restore

