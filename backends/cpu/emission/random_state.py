"""The counter of the process that compiled code draws random numbers from.

The evaluator has another: neither can wait for the other's lock. They count in different halves of 128 bits.
"""

from __future__ import annotations

import numpy as np

from xlalite.backends.cpu.native.aligned_memory import aligned

_memory = aligned(np.array([0x7012395, 1 << 63], np.uint64).view(np.uint8))
_address = int(_memory.ctypes.data)


def random_state_address() -> int:
    """Where it is, as long as the process lives."""
    return _address
