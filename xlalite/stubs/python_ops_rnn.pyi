# Written by `python -m pytest tests/test_public_names.py --bless` from the tables of names.

from xlalite.ops.recurrent.networks import (
    bidirectional_dynamic_rnn as bidirectional_dynamic_rnn, dynamic_rnn as dynamic_rnn, raw_rnn as raw_rnn,
    static_bidirectional_rnn as static_bidirectional_rnn, static_rnn as static_rnn
)

