"""Whether code may use the processor's registers of matrices (AMX), for which Linux must be asked first."""

from __future__ import annotations

import ctypes
import platform
import sys
from functools import cache

_ARCH_PRCTL = 158
_ASK_FOR_STATE = 0x1023  # ARCH_REQ_XCOMP_PERM
_MATRICES = 18  # XFEATURE_XTILEDATA


@cache
def may_use_matrix_registers() -> bool:
    """Asks for this process, its threads and the children that it forks; without leave, their code is ended.

    Linux 5.16 and later know the question. They refuse if the processor has no such registers, or if a thread has a
    stack for signals that is too small for what is in them.
    """
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return False
    words = (ctypes.c_long(number) for number in (_ARCH_PRCTL, _ASK_FOR_STATE, _MATRICES))
    return int(ctypes.CDLL(None).syscall(*words)) == 0
