# Written by `python -m pytest tests/test_public_names.py --bless` from the tables of names.

from xlalite.ops.training.saved_models import load as load, maybe_saved_model_directory as maybe_saved_model_directory

