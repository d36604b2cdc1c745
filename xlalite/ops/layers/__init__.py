"""Layers: functions and objects that make variables and use them, under TensorFlow's names.

`base.py` has what all share; a file a family follows; `slim_layers.py` has those of `tf.contrib`.
"""
