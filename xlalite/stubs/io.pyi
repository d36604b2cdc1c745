# Written by `python -m pytest tests/test_public_names.py --bless` from the tables of names.

from xlalite.files.records import (
    TFRecordCompressionType as TFRecordCompressionType, TFRecordOptions as TFRecordOptions,
    TFRecordWriter as TFRecordWriter, tf_record_iterator as tf_record_iterator
)
from xlalite.stubs import io_gfile as _io_gfile

gfile = _io_gfile
