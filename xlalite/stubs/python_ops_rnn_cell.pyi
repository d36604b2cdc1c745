# Written by `python -m pytest tests/test_public_names.py --bless` from the tables of names.

from xlalite.ops.recurrent.cell import LSTMStateTuple as LSTMStateTuple, RNNCell as RNNCell
from xlalite.ops.recurrent.cells import (
    BasicLSTMCell as BasicLSTMCell, BasicRNNCell as BasicRNNCell, GRUCell as GRUCell, LSTMCell as LSTMCell
)
from xlalite.ops.recurrent.wrappers import (
    DeviceWrapper as DeviceWrapper, DropoutWrapper as DropoutWrapper, MultiRNNCell as MultiRNNCell,
    ResidualWrapper as ResidualWrapper
)

