# Written by `python -m pytest tests/test_public_names.py --bless` from the tables of names.

from xlalite.ops.functions.lookup import (
    string_to_hash_bucket as _string_to_hash_bucket, string_to_hash_bucket_fast as _string_to_hash_bucket_fast
)
from xlalite.ops.functions.strings import (
    as_string as as_string, reduce_join as reduce_join, regex_full_match as regex_full_match,
    regex_replace as regex_replace, split as split, string_join as _string_join, string_length as _string_length,
    string_lower as _string_lower, string_strip as _string_strip, string_to_number as _string_to_number,
    string_upper as _string_upper, substr as substr
)

join = _string_join
length = _string_length
lower = _string_lower
strip = _string_strip
to_number = _string_to_number
upper = _string_upper
to_hash_bucket = _string_to_hash_bucket
to_hash_bucket_fast = _string_to_hash_bucket_fast
