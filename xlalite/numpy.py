"""NumPy's names, compiled: `import xlalite.numpy as np`.

Functions of arrays are compiled for their shapes and types, each by itself; in a function under `xlalite.jit` they are
recorded as NumPy's own are. The names and their meaning are NumPy's (and those of the array API standard, 2024.12).
"""

import sys

import numpy

from xlalite.tracing.namespace import Namespace

_here = Namespace(__name__, numpy, True)
_here.__file__, _here.__spec__, _here.__doc__ = __file__, __spec__, __doc__
sys.modules[__name__] = _here
