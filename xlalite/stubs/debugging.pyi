# Written by `python -m pytest tests/test_public_names.py --bless` from the tables of names.

from xlalite.ops.functions.control_flow import Assert as Assert
from xlalite.ops.functions.host_functions import (
    assert_equal as assert_equal, assert_greater as assert_greater, assert_greater_equal as assert_greater_equal,
    assert_integer as assert_integer, assert_less as assert_less, assert_less_equal as assert_less_equal,
    assert_near as assert_near, assert_negative as assert_negative, assert_non_negative as assert_non_negative,
    assert_non_positive as assert_non_positive, assert_none_equal as assert_none_equal,
    assert_positive as assert_positive, assert_rank as assert_rank, assert_rank_at_least as assert_rank_at_least,
    assert_rank_in as assert_rank_in, assert_scalar as assert_scalar, assert_type as assert_type,
    is_numeric_tensor as is_numeric_tensor
)
from xlalite.ops.functions.math import is_finite as is_finite, is_inf as is_inf, is_nan as is_nan
from xlalite.ops.functions.special import check_numerics as check_numerics

