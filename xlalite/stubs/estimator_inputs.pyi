# Written by `python -m pytest tests/test_public_names.py --bless` from the tables of names.

from xlalite.client.estimator_inputs import numpy_input_fn as numpy_input_fn, pandas_input_fn as pandas_input_fn

