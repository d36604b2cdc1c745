"""`tf.contrib.compiler`: the scopes that ask for compilation."""

from xlalite.contrib.compiler import jit as jit
