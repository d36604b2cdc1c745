# Written by `python -m pytest tests/test_public_names.py --bless` from the tables of names.

from xlalite.framework.graph.dtypes import (
    DType as DType, as_dtype as as_dtype, bfloat16 as bfloat16, bool_ as _bool_, complex128 as complex128,
    complex64 as complex64, float16 as float16, float32 as float32, float64 as float64, int16 as int16, int32 as int32,
    int64 as int64, int8 as int8, resource as resource, string as string, uint16 as uint16, uint32 as uint32,
    uint64 as uint64, uint8 as uint8
)
from xlalite.ops.functions.math import cast as cast
from xlalite.ops.functions.special import complex as complex, saturate_cast as saturate_cast
from xlalite.ops.functions.strings import as_string as as_string

bool = _bool_
