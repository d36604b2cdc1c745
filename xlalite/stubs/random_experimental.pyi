# Written by `python -m pytest tests/test_public_names.py --bless` from the tables of names.

from xlalite.ops.training.random_generator import (
    Algorithm as Algorithm, Generator as Generator, create_rng_state as create_rng_state,
    get_global_generator as get_global_generator, set_global_generator as set_global_generator
)

