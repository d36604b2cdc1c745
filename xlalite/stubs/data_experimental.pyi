# Written by `python -m pytest tests/test_public_names.py --bless` from the tables of names.

from xlalite.ops.data.dataset import (
    group_by_window as group_by_window, ignore_errors as ignore_errors, map_and_batch as map_and_batch,
    parallel_interleave as parallel_interleave, shuffle_and_repeat as shuffle_and_repeat, unbatch as unbatch
)

