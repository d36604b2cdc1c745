"""Whether a cluster is compiled for a signature now, later, or no more.

The rules and thresholds are those of TensorFlow's compilation cache: the first signature of a cluster at once, another
when it comes back; a cluster that is compiled again and again for signatures that are hardly used is given up.
"""

from __future__ import annotations

import enum
from collections import OrderedDict

from xlalite.framework.meaning.signatures import Signature
from xlalite.runtime.options import CompileMode

MANY_COMPILATIONS = 10
RUNS_PER_COMPILATION = 50
_REMEMBERED_SIGNATURES = 1024


class Verdict(enum.Enum):
    """What to do with a signature that is not compiled yet; the value is the reason."""

    COMPILE = "compiled"
    NOT_YET = "first use of a new signature"
    PERHAPS_ONCE = "it only gives variables values, and may run but once"
    NEVER = "compilation is off"
    MEGAMORPHIC = "compiled too often for signatures that are hardly used"
    OFTEN_ENOUGH = "compiled as often as the session allows for a cluster"


class CompilePolicy:
    """Counts the runs and compilations of one cluster; callers take turns.

    Attributes:
        runs: Runs of the cluster, compiled or not.
        compilations: Signatures compiled.
        is_megamorphic: Whether nothing more is compiled because the signatures keep changing.
    """

    def __init__(
        self, mode: CompileMode, threshold: int, *, runs_once: bool = False, max_compilations: int | None = None
    ) -> None:
        """Nothing has run yet.

        Args:
            mode: When clusters are compiled.
            threshold: At which use of a signature, where not at once.
            runs_once: Whether the cluster will hardly run twice, so that its first run is not compiled.
            max_compilations: For how many signatures it is compiled at most; None for no limit.
        """
        self.runs = 0
        self.compilations = 0
        self.is_megamorphic = False
        self._mode = mode
        self._threshold = threshold
        self._runs_once = runs_once
        self._max_compilations = max_compilations
        self._requests: OrderedDict[Signature, int] = OrderedDict()

    def decide(self, signature: Signature) -> Verdict:
        """Counts a request for a signature that is not compiled, and says what to do."""
        if self._mode is CompileMode.OFF:
            return Verdict.NEVER
        if self._mode is CompileMode.STRICT:
            return Verdict.COMPILE
        if self._max_compilations is not None and self.compilations >= self._max_compilations:
            return Verdict.OFTEN_ENOUGH
        if self.compilations > MANY_COMPILATIONS and self.runs < RUNS_PER_COMPILATION * self.compilations:
            self.is_megamorphic = True
        if self.is_megamorphic:
            return Verdict.MEGAMORPHIC
        requests = self._requests[signature] = self._requests.pop(signature, 0) + 1
        if len(self._requests) > _REMEMBERED_SIGNATURES:
            self._requests.popitem(last=False)
        if requests >= self._threshold:
            return Verdict.COMPILE
        if self.compilations > 0:
            return Verdict.NOT_YET
        return Verdict.PERHAPS_ONCE if self._runs_once and self.runs < self._threshold else Verdict.COMPILE
