"""NumPy, where its functions are given traced arrays: its stubs, for type checkers, know no arrays but its own."""

from typing import Any, Final

import numpy

np: Final[Any] = numpy
