import ml_dtypes
import numpy as np
import pytest

from xlalite.framework.graph import dtypes
from xlalite.framework.graph.dtypes import as_dtype, result_type
from xlalite.hlo.types.dtype import DType as HloDType


@pytest.mark.parametrize("dtype", dtypes.ALL_TYPES, ids=lambda dtype: dtype.name)
def test_types_equal_their_names_and_numpy_types(dtype: dtypes.DType) -> None:
    assert dtype == dtype.name
    assert as_dtype(dtype.name) is dtype
    if not dtype.is_host_only:
        assert (dtype == dtype.numpy_dtype) is not dtype.is_quantized
        assert (as_dtype(dtype.hlo) is dtype) is not dtype.is_quantized
        assert dtype.hlo.numpy == dtype.numpy_dtype


def test_python_types_mean_what_literals_become() -> None:
    assert as_dtype(float) is dtypes.float32
    assert as_dtype(int) is dtypes.int32
    assert as_dtype(bool) is dtypes.bool_
    assert as_dtype(np.float32) is dtypes.float32


def test_byte_order_is_no_part_of_a_type() -> None:
    assert as_dtype(np.dtype(">f4")) is as_dtype(np.dtype("<f4")) is dtypes.float32
    assert as_dtype(np.dtype(dtypes.bfloat16.numpy_dtype).newbyteorder()) is dtypes.bfloat16


def test_types_that_do_not_exist_are_named() -> None:
    with pytest.raises(TypeError, match="float99"):
        as_dtype("float99")
    with pytest.raises(TypeError, match="s4"):
        as_dtype(HloDType.S4)
    assert dtypes.float32 != "float99"
    assert dtypes.float32 != None  # noqa: E711


def test_limits_include_ml_dtypes() -> None:
    assert dtypes.int8.max == 127
    assert float(dtypes.bfloat16.max) == float(ml_dtypes.finfo(ml_dtypes.bfloat16).max)
    with pytest.raises(TypeError):
        _ = dtypes.bool_.max


def test_promotion_is_numpys() -> None:
    assert result_type(dtypes.int32, dtypes.float32) is dtypes.float64
    assert result_type(dtypes.uint8, dtypes.int8) is dtypes.int16
    assert result_type(dtypes.bfloat16, dtypes.float32) is dtypes.float32
    with pytest.raises(TypeError, match="float16 and bfloat16"):
        result_type(dtypes.float16, dtypes.bfloat16)
