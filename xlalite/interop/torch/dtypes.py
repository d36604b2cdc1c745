"""Element types of torch and their twins in HLO."""

from __future__ import annotations

import torch

from xlalite.hlo.types.dtype import DType

_NAMES = {
    **{"bool": DType.PRED, "uint8": DType.U8, "uint16": DType.U16, "uint32": DType.U32, "uint64": DType.U64},
    **{"int8": DType.S8, "int16": DType.S16, "int32": DType.S32, "int64": DType.S64},
    **{"float16": DType.F16, "bfloat16": DType.BF16, "float32": DType.F32, "float64": DType.F64},
    **{"complex64": DType.C64, "complex128": DType.C128},
    **{"float8_e4m3fn": DType.F8E4M3FN, "float8_e5m2": DType.F8E5M2},
    **{"float8_e4m3fnuz": DType.F8E4M3FNUZ, "float8_e5m2fnuz": DType.F8E5M2FNUZ},
}
DTYPES: dict[torch.dtype, DType] = {getattr(torch, name): dtype for name, dtype in _NAMES.items()}
TORCH_DTYPES: dict[DType, torch.dtype] = {dtype: mine for mine, dtype in DTYPES.items()}
