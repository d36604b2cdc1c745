"""The messages of ONNX's files: names, numbers and types of the fields, spelled as in `hlo/proto`."""

from __future__ import annotations

from typing import Final

from xlalite.hlo.proto.message import ProtoMessage
from xlalite.hlo.proto.schema import declare_messages
from xlalite.hlo.proto.wire import decode

_ENUMS: Final = """
onnx.DataLocation:
    0 DEFAULT; 1 EXTERNAL
"""

_MESSAGES: Final = """
onnx.ModelProto:
    1 ir_version int64; 8 opset_import onnx.OperatorSetIdProto*; 2 producer_name string; 7 graph onnx.GraphProto;
    25 functions onnx.FunctionProto*
onnx.OperatorSetIdProto:
    1 domain string; 2 version int64
onnx.GraphProto:
    1 node onnx.NodeProto*; 2 name string; 5 initializer onnx.TensorProto*;
    15 sparse_initializer onnx.SparseTensorProto*; 11 input onnx.ValueInfoProto*; 12 output onnx.ValueInfoProto*
onnx.FunctionProto:
    1 name string; 4 input string*; 5 output string*; 6 attribute string*; 11 attribute_proto onnx.AttributeProto*;
    7 node onnx.NodeProto*; 9 opset_import onnx.OperatorSetIdProto*; 10 domain string; 13 overload string
onnx.NodeProto:
    1 input string*; 2 output string*; 3 name string; 4 op_type string; 7 domain string; 8 overload string;
    5 attribute onnx.AttributeProto*
onnx.AttributeProto:
    1 name string; 21 ref_attr_name string; 20 type int32; 2 f float; 3 i int64; 4 s bytes; 5 t onnx.TensorProto;
    6 g onnx.GraphProto; 22 sparse_tensor onnx.SparseTensorProto; 14 tp onnx.TypeProto; 7 floats float*;
    8 ints int64*; 9 strings bytes*; 10 tensors onnx.TensorProto*; 11 graphs onnx.GraphProto*
onnx.TensorProto:
    1 dims int64*; 2 data_type int32; 4 float_data float[]; 5 int32_data int32[]; 6 string_data bytes*;
    7 int64_data int64[]; 8 name string; 9 raw_data bytes; 10 double_data double[]; 11 uint64_data uint64[];
    13 external_data onnx.StringStringEntryProto*; 14 data_location enum:onnx.DataLocation
onnx.SparseTensorProto:
    1 values onnx.TensorProto; 2 indices onnx.TensorProto; 3 dims int64*
onnx.StringStringEntryProto:
    1 key string; 2 value string
onnx.ValueInfoProto:
    1 name string; 2 type onnx.TypeProto
onnx.TypeProto:
    1 tensor_type onnx.TypeProto.Tensor; 4 sequence_type onnx.TypeProto.Sequence;
    9 optional_type onnx.TypeProto.Optional
onnx.TypeProto.Tensor:
    1 elem_type int32; 2 shape onnx.TensorShapeProto
onnx.TypeProto.Sequence:
    1 elem_type onnx.TypeProto
onnx.TypeProto.Optional:
    1 elem_type onnx.TypeProto
onnx.TensorShapeProto:
    1 dim onnx.TensorShapeProto.Dimension*
onnx.TensorShapeProto.Dimension:
    1 dim_value int64?size; 2 dim_param string?size
"""

declare_messages(_MESSAGES, _ENUMS)


def decode_model(data: bytes) -> ProtoMessage:
    """The `ModelProto` that bytes spell.

    Raises:
        BinaryParseError: The bytes are no such message; says where.
    """
    return decode(data, "onnx.ModelProto")
