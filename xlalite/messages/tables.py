"""The messages of TensorFlow's files: names, numbers and types of the fields, spelled as in `hlo/proto`.

A message whose name ends in `Entry` is an entry of a mapping. What xlalite has no use for is left out and skipped.
"""

from typing import Final

from xlalite.hlo.proto.schema import declare_messages

_ENUMS: Final = """
DataType:
    0 DT_INVALID; 1 DT_FLOAT; 2 DT_DOUBLE; 3 DT_INT32; 4 DT_UINT8; 5 DT_INT16; 6 DT_INT8; 7 DT_STRING;
    8 DT_COMPLEX64; 9 DT_INT64; 10 DT_BOOL; 11 DT_QINT8; 12 DT_QUINT8; 13 DT_QINT32; 14 DT_BFLOAT16; 15 DT_QINT16;
    16 DT_QUINT16; 17 DT_UINT16; 18 DT_COMPLEX128; 19 DT_HALF; 20 DT_RESOURCE; 21 DT_VARIANT; 22 DT_UINT32;
    23 DT_UINT64; 101 DT_FLOAT_REF; 102 DT_DOUBLE_REF; 103 DT_INT32_REF; 104 DT_UINT8_REF; 105 DT_INT16_REF;
    106 DT_INT8_REF; 107 DT_STRING_REF; 108 DT_COMPLEX64_REF; 109 DT_INT64_REF; 110 DT_BOOL_REF; 114 DT_BFLOAT16_REF;
    118 DT_COMPLEX128_REF; 119 DT_HALF_REF; 120 DT_RESOURCE_REF; 122 DT_UINT32_REF; 123 DT_UINT64_REF
SaverDef.CheckpointFormatVersion:
    0 LEGACY; 1 V1; 2 V2
SessionLog.SessionStatus:
    0 STATUS_UNSPECIFIED; 1 START; 2 STOP; 3 CHECKPOINT
BundleHeaderProto.Endianness:
    0 LITTLE; 1 BIG
"""

_MESSAGES: Final = """
BytesList:
    1 value bytes*
FloatList:
    1 value float[]
Int64List:
    1 value int64[]
Feature:
    1 bytes_list BytesList?kind; 2 float_list FloatList?kind; 3 int64_list Int64List?kind
Features.FeatureEntry:
    1 key string; 2 value Feature
Features:
    1 feature Features.FeatureEntry*
FeatureList:
    1 feature Feature*
FeatureLists.FeatureListEntry:
    1 key string; 2 value FeatureList
FeatureLists:
    1 feature_list FeatureLists.FeatureListEntry*
Example:
    1 features Features
SequenceExample:
    1 context Features; 2 feature_lists FeatureLists
TensorShapeProto.Dim:
    1 size int64; 2 name string
TensorShapeProto:
    2 dim TensorShapeProto.Dim*; 3 unknown_rank bool
TensorProto:
    1 dtype enum:DataType; 2 tensor_shape TensorShapeProto; 3 version_number int32; 4 tensor_content bytes;
    5 float_val float[]; 6 double_val double[]; 7 int_val int32[]; 8 string_val bytes*; 9 scomplex_val float[];
    10 int64_val int64[]; 11 bool_val bool[]; 12 dcomplex_val double[]; 13 half_val int32[]; 16 uint32_val uint32[];
    17 uint64_val uint64[]
AttrValue.ListValue:
    2 s bytes*; 3 i int64*; 4 f float*; 5 b bool*; 6 type enum:DataType*; 7 shape TensorShapeProto*;
    8 tensor TensorProto*; 9 func NameAttrList*
AttrValue:
    1 list AttrValue.ListValue?value; 2 s bytes?value; 3 i int64?value; 4 f float?value; 5 b bool?value;
    6 type enum:DataType?value; 7 shape TensorShapeProto?value; 8 tensor TensorProto?value; 9 placeholder string?value;
    10 func NameAttrList?value
AttrEntry:
    1 key string; 2 value AttrValue
NameAttrList:
    1 name string; 2 attr AttrEntry*
NodeDef:
    1 name string; 2 op string; 3 input string*; 4 device string; 5 attr AttrEntry*
VersionDef:
    1 producer int32; 2 min_consumer int32; 3 bad_consumers int32*
OpDef.ArgDef:
    1 name string; 2 description string; 3 type enum:DataType; 4 type_attr string; 5 number_attr string;
    6 type_list_attr string; 16 is_ref bool
OpDef.AttrDef:
    1 name string; 2 type string; 3 default_value AttrValue; 4 description string; 5 has_minimum bool; 6 minimum int64;
    7 allowed_values AttrValue
OpDef:
    1 name string; 2 input_arg OpDef.ArgDef*; 3 output_arg OpDef.ArgDef*; 4 attr OpDef.AttrDef*; 5 summary string;
    6 description string; 16 is_aggregate bool; 17 is_stateful bool; 18 is_commutative bool;
    19 allows_uninitialized_input bool; 20 control_output string*
OpList:
    1 op OpDef*
FunctionDef.RetEntry:
    1 key string; 2 value string
FunctionDef:
    1 signature OpDef; 3 node_def NodeDef*; 4 ret FunctionDef.RetEntry*; 5 attr AttrEntry*;
    6 control_ret FunctionDef.RetEntry*
GradientDef:
    1 function_name string; 2 gradient_func string
FunctionDefLibrary:
    1 function FunctionDef*; 2 gradient GradientDef*
GraphDef:
    1 node NodeDef*; 2 library FunctionDefLibrary; 3 version int32; 4 versions VersionDef
SaverDef:
    1 filename_tensor_name string; 2 save_tensor_name string; 3 restore_op_name string; 4 max_to_keep int32;
    5 sharded bool; 6 keep_checkpoint_every_n_hours float; 7 version enum:SaverDef.CheckpointFormatVersion
CollectionDef.NodeList:
    1 value string*
CollectionDef.BytesList:
    1 value bytes*
CollectionDef.Int64List:
    1 value int64*
CollectionDef.FloatList:
    1 value float*
Any:
    1 type_url string; 2 value bytes
CollectionDef.AnyList:
    1 value Any*
CollectionDef:
    1 node_list CollectionDef.NodeList?kind; 2 bytes_list CollectionDef.BytesList?kind;
    3 int64_list CollectionDef.Int64List?kind; 4 float_list CollectionDef.FloatList?kind;
    5 any_list CollectionDef.AnyList?kind
MetaGraphDef.CollectionDefEntry:
    1 key string; 2 value CollectionDef
TensorInfo:
    1 name string?encoding; 2 dtype enum:DataType; 3 tensor_shape TensorShapeProto
SignatureDef.Entry:
    1 key string; 2 value TensorInfo
SignatureDef:
    1 inputs SignatureDef.Entry*; 2 outputs SignatureDef.Entry*; 3 method_name string
MetaGraphDef.SignatureDefEntry:
    1 key string; 2 value SignatureDef
AssetFileDef:
    1 tensor_info TensorInfo; 2 filename string
MetaGraphDef.MetaInfoDef:
    1 meta_graph_version string; 2 stripped_op_list OpList; 4 tags string*; 5 tensorflow_version string;
    6 tensorflow_git_version string; 7 stripped_default_attrs bool
MetaGraphDef:
    1 meta_info_def MetaGraphDef.MetaInfoDef; 2 graph_def GraphDef; 3 saver_def SaverDef;
    4 collection_def MetaGraphDef.CollectionDefEntry*; 5 signature_def MetaGraphDef.SignatureDefEntry*;
    6 asset_file_def AssetFileDef*
SavedModel:
    1 saved_model_schema_version int64; 2 meta_graphs MetaGraphDef*
VariableDef:
    1 variable_name string; 2 initializer_name string; 3 snapshot_name string; 5 is_resource bool;
    6 initial_value_name string; 7 trainable bool; 8 synchronization int32; 9 aggregation int32
QueueRunnerDef:
    1 queue_name string; 2 enqueue_op_name string*; 3 close_op_name string; 4 cancel_op_name string
CheckpointState:
    1 model_checkpoint_path string; 2 all_model_checkpoint_paths string*; 3 all_model_checkpoint_timestamps double*;
    4 last_preserved_timestamp double
SpriteMetadata:
    1 image_path string; 2 single_image_dim uint32[]
EmbeddingInfo:
    1 tensor_name string; 2 metadata_path string; 3 bookmarks_path string; 4 tensor_shape uint32[];
    5 sprite SpriteMetadata; 6 tensor_path string
ProjectorConfig:
    1 model_checkpoint_path string; 2 embeddings EmbeddingInfo*; 3 model_checkpoint_dir string
BundleHeaderProto:
    1 num_shards int32; 2 endianness enum:BundleHeaderProto.Endianness; 3 version VersionDef
TensorSliceProto.Extent:
    1 start int64; 2 length int64?has_length
TensorSliceProto:
    1 extent TensorSliceProto.Extent*
BundleEntryProto:
    1 dtype enum:DataType; 2 shape TensorShapeProto; 3 shard_id int32; 4 offset int64; 5 size int64; 6 crc32c fixed32;
    7 slices TensorSliceProto*
HistogramProto:
    1 min double; 2 max double; 3 num double; 4 sum double; 5 sum_squares double; 6 bucket_limit double[];
    7 bucket double[]
SummaryMetadata.PluginData:
    1 plugin_name string; 2 content bytes
SummaryMetadata:
    1 plugin_data SummaryMetadata.PluginData; 2 display_name string; 3 summary_description string; 4 data_class int32
Summary.Image:
    1 height int32; 2 width int32; 3 colorspace int32; 4 encoded_image_string bytes
Summary.Audio:
    1 sample_rate float; 2 num_channels int64; 3 length_frames int64; 4 encoded_audio_string bytes;
    5 content_type string
Summary.Value:
    1 tag string; 2 simple_value float?value; 4 image Summary.Image?value; 5 histo HistogramProto?value;
    6 audio Summary.Audio?value; 7 node_name string; 8 tensor TensorProto?value; 9 metadata SummaryMetadata
Summary:
    1 value Summary.Value*
SessionLog:
    1 status enum:SessionLog.SessionStatus; 2 checkpoint_path string; 3 msg string
Event:
    1 wall_time double; 2 step int64; 3 file_version string?what; 4 graph_def bytes?what; 5 summary Summary?what;
    7 session_log SessionLog?what; 9 meta_graph_def bytes?what
"""

declare_messages(_MESSAGES, _ENUMS)

NAMES: Final = tuple(line[:-1] for line in _MESSAGES.splitlines() if line.endswith(":"))
"""The names of all messages."""
