"""How a session's clusters are compiled."""

from __future__ import annotations

import enum
from dataclasses import field

from xlalite.hlo.records import dataclass
from xlalite.passes.core.base import HloPass
from xlalite.passes.core.debug_options import DebugOptions


class CompileMode(enum.Enum):
    """When a cluster is compiled."""

    LAZY = "lazy"
    """The first signature at once, every other when it comes back; what cannot be compiled runs op by op."""
    STRICT = "strict"
    """Every signature at once; what cannot be compiled is an error."""
    ASYNC = "async"
    """As `LAZY`, but in the background: the operations run one by one until the code is there."""
    OFF = "off"
    """Never."""


@dataclass(frozen=True, slots=True)
class RuntimeOptions:
    """The settled options of one session's runtime.

    Attributes:
        compile_mode: When clusters are compiled.
        lazy_compile_threshold: At which use of a signature `LAZY` compiles.
        num_threads: Threads of compiled code; None leaves the choice to the backend.
        backend: What compiles.
        keep_faster: Whether each cluster runs both ways in turn at first, and then keeps to the faster.
        max_compilations: For how many signatures a cluster is compiled at most, unless `STRICT`; None for no limit.
        cache_bytes: How much compiled code is kept; None for no limit.
        debug: Dumps, and what restricts the passes.
        optimize: Whether passes that only make code faster run.
        extra_passes: (place, pass) pairs that run besides.
    """

    compile_mode: CompileMode = CompileMode.LAZY
    lazy_compile_threshold: int = 2
    num_threads: int | None = None
    backend: str = "cpu"
    keep_faster: bool = False
    max_compilations: int | None = None
    cache_bytes: int | None = None
    debug: DebugOptions = field(default_factory=DebugOptions)
    optimize: bool = True
    extra_passes: tuple[tuple[str, HloPass], ...] = ()
