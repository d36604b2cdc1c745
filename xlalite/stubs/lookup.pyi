# Written by `python -m pytest tests/test_public_names.py --bless` from the tables of names.

from xlalite.ops.functions.lookup import (
    KeyValueTensorInitializer as KeyValueTensorInitializer, StaticHashTable as StaticHashTable,
    TextFileIndex as TextFileIndex, TextFileInitializer as TextFileInitializer
)

