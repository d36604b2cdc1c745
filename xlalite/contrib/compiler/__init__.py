"""`tf.contrib.compiler`: the scopes that ask for compilation."""

from xlalite.contrib.compiler import jit as jit
from xlalite.ops.functions import defined_functions as xla

__all__ = ["jit", "xla"]
