# Written by `python -m pytest tests/test_public_names.py --bless` from the tables of names.

from xlalite.ops.training.initializers import (
    glorot_normal_initializer as _glorot_normal_initializer, glorot_uniform_initializer as _glorot_uniform_initializer,
    he_normal as he_normal, he_uniform as he_uniform, lecun_normal as lecun_normal, lecun_uniform as lecun_uniform
)

glorot_normal = _glorot_normal_initializer
glorot_uniform = _glorot_uniform_initializer
