# Written by `python -m pytest tests/test_public_names.py --bless` from the tables of names.

from xlalite.stubs import python_ops_rnn as _python_ops_rnn, python_ops_rnn_cell as _python_ops_rnn_cell

rnn = _python_ops_rnn
rnn_cell = _python_ops_rnn_cell
