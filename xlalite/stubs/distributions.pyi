# Written by `python -m pytest tests/test_public_names.py --bless` from the tables of names.

from xlalite.ops.functions.probability import Normal as Normal, kl_divergence as kl_divergence

