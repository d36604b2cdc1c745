"""How many threads to use: an explicit wish, else `XLALITE_NUM_THREADS`, else the CPUs this process may run on."""

from __future__ import annotations

import ctypes
import functools
import math
import os
import platform
import sys
import time
from collections.abc import Callable

from xlalite.hlo.errors import FlagError
from xlalite.hlo.surroundings.host_caches import system_file

PARALLEL_FOR = "xlalite_parallel_for"
"""The function that generated code calls to fork a loop."""

MAX_THREADS = 512
FUTEX_SYSCALL = {"x86_64": 202, "aarch64": 98, "riscv64": 98, "loongarch64": 98}

ENVIRONMENT_NAME = "XLALITE_NUM_THREADS"
_CGROUP_ROOT = "/sys/fs/cgroup"
_QUOTA_SECONDS = 1.0


def has_native_pool() -> bool:
    """Whether worker threads exist here; elsewhere `xlalite_parallel_for` runs everything in the caller."""
    return sys.platform == "linux" and platform.machine() in FUTEX_SYSCALL and ctypes.sizeof(ctypes.c_void_p) == 8


def resolve_num_threads(wanted: int | None = None) -> int:
    """The number of threads that take part in a computation, the caller included; obeyed exactly.

    Args:
        wanted: An option of the user; None when there is none.

    Raises:
        FlagError: The option or the environment variable is not an integer from 1 to 512.
    """
    if wanted is not None:
        return _checked(wanted, "num_threads")
    text = os.environ.get(ENVIRONMENT_NAME, "").strip()
    if not text:
        return min(available_cpus(), MAX_THREADS)
    try:
        number = int(text)
    except ValueError:
        raise FlagError(f"{ENVIRONMENT_NAME} is {text!r}; expected an integer from 1 to {MAX_THREADS}") from None
    return _checked(number, ENVIRONMENT_NAME)


def available_cpus() -> int:
    """CPUs this process may run on: its affinity mask, limited by the CPU quota of its control group (rounded up)."""
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = _recent_quota(time.monotonic() // _QUOTA_SECONDS)
    return cpus if quota is None else max(1, min(cpus, math.ceil(quota)))


@functools.lru_cache(maxsize=1)
def _recent_quota(_: float) -> float | None:
    """The quota, read again once a second: every compilation asks for it, and it stands in many files."""
    return cgroup_cpu_quota()


def cgroup_cpu_quota(root: str = _CGROUP_ROOT, membership: str = "/proc/self/cgroup") -> float | None:
    """The CPU time a second that the control group allows, or None when it is unlimited or unknown."""
    try:
        lines = os.fsdecode(system_file(membership)).splitlines()
    except OSError:
        return None
    quotas: list[float] = []
    for line in lines:
        _, _, rest = line.partition(":")
        controllers, _, group = rest.partition(":")
        if not controllers:
            quotas += _quotas_upward(root, group, _version_2_quota)
        elif "cpu" in controllers.split(","):
            quotas += _quotas_upward(f"{root}/cpu", group, _version_1_quota)
    return min(quotas, default=None)


def _quotas_upward(root: str, group: str, read: Callable[[str], float | None]) -> list[float]:
    """The quotas of a group and of all groups around it; inside a container the named group may not be visible."""
    names = [name for name in group.split("/") if name]
    found = (read("/".join((root, *names[:count]))) for count in range(len(names), -1, -1))
    return [quota for quota in found if quota is not None]


def _version_2_quota(folder: str) -> float | None:
    try:
        quota, period = system_file(f"{folder}/cpu.max").split()
        return None if quota == b"max" else int(quota) / int(period)
    except (OSError, ValueError, ZeroDivisionError):
        return None


def _version_1_quota(folder: str) -> float | None:
    try:
        quota = int(system_file(f"{folder}/cpu.cfs_quota_us"))
        if quota <= 0:
            return None
        period = int(system_file(f"{folder}/cpu.cfs_period_us"))
    except (OSError, ValueError):
        return None
    return quota / period


def _checked(number: object, name: str) -> int:
    if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= MAX_THREADS:
        raise FlagError(f"{name} is {number!r}; expected an integer from 1 to {MAX_THREADS}")
    return number
