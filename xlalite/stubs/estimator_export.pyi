# Written by `python -m pytest tests/test_public_names.py --bless` from the tables of names.

from xlalite.client.estimator_spec import (
    PredictOutput as PredictOutput, ServingInputReceiver as ServingInputReceiver,
    build_raw_serving_input_receiver_fn as build_raw_serving_input_receiver_fn
)

