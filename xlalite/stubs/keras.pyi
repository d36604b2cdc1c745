# Written by `python -m pytest tests/test_public_names.py --bless` from the tables of names.

from xlalite.stubs import keras_initializers as _keras_initializers, keras_losses as _keras_losses

initializers = _keras_initializers
losses = _keras_losses
