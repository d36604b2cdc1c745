"""The files of TensorFlow programs: records, tables of keys, checkpoints and events, each written and read.

A file that takes another's place does so in one step, so that a crash leaves the one or the other.
"""
