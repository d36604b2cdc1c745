# Written by `python -m pytest tests/test_public_names.py --bless` from the tables of names.

from xlalite.files.graph_files import write_graph as write_graph
from xlalite.files.records import (
    TFRecordCompressionType as TFRecordCompressionType, TFRecordOptions as TFRecordOptions,
    TFRecordWriter as TFRecordWriter, tf_record_iterator as tf_record_iterator
)
from xlalite.ops.data.features import (
    FixedLenFeature as FixedLenFeature, FixedLenSequenceFeature as FixedLenSequenceFeature,
    SparseFeature as SparseFeature, VarLenFeature as VarLenFeature
)
from xlalite.ops.data.parsing import (
    decode_csv as decode_csv, decode_raw as decode_raw, parse_example as parse_example,
    parse_single_example as parse_single_example, parse_single_sequence_example as parse_single_sequence_example
)
from xlalite.ops.functions.image_files import (
    decode_and_crop_jpeg as decode_and_crop_jpeg, decode_bmp as decode_bmp, decode_gif as decode_gif,
    decode_image as decode_image, decode_jpeg as decode_jpeg, decode_png as decode_png, encode_jpeg as encode_jpeg,
    encode_png as encode_png, extract_jpeg_shape as extract_jpeg_shape
)
from xlalite.ops.functions.queues import (
    FIFOQueue as FIFOQueue, PaddingFIFOQueue as PaddingFIFOQueue, PriorityQueue as PriorityQueue,
    QueueBase as QueueBase, RandomShuffleQueue as RandomShuffleQueue
)
from xlalite.ops.functions.strings import (
    decode_base64 as decode_base64, encode_base64 as encode_base64, matching_files as matching_files,
    read_file as read_file, write_file as write_file
)
from xlalite.stubs import io_gfile as _io_gfile

gfile = _io_gfile
