# Written by `python -m pytest tests/test_public_names.py --bless` from the tables of names.

from xlalite.ops.training.saved_models import (
    build_tensor_info as build_tensor_info, get_tensor_from_tensor_info as get_tensor_from_tensor_info
)

