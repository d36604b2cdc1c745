"""The part of TensorFlow's `tf.contrib` that belongs to the JIT."""

from xlalite.contrib import compiler as compiler
