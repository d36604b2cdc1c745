# Written by `python -m pytest tests/test_public_names.py --bless` from the tables of names.

from xlalite.ops.data.dataset import (
    Dataset as Dataset, FixedLengthRecordDataset as FixedLengthRecordDataset, TFRecordDataset as TFRecordDataset,
    TextLineDataset as TextLineDataset
)
from xlalite.ops.data.iterators import (
    Iterator as Iterator, get_output_shapes as get_output_shapes, get_output_types as get_output_types,
    make_initializable_iterator as make_initializable_iterator, make_one_shot_iterator as make_one_shot_iterator
)
from xlalite.stubs import data_experimental as _data_experimental

experimental = _data_experimental
