# Written by `python -m pytest tests/test_public_names.py --bless` from the tables of names.

from xlalite.ops.training.saved_models import (
    build_signature_def as build_signature_def, classification_signature_def as classification_signature_def,
    predict_signature_def as predict_signature_def, regression_signature_def as regression_signature_def
)

