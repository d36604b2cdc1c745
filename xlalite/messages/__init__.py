"""Protocol buffers as users of TensorFlow know them, without the protobuf package.

`settings.py` gives objects their manners; `tables.py` says which messages there are, and `classes.py` makes a class of
each, with bytes and text both ways. `hlo/proto` reads and writes the bytes.
"""
