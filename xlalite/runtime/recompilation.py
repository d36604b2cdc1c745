"""Why a cluster is compiled once more: which argument differs from the nearest signature it was compiled for."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from xlalite.framework.meaning.signatures import Signature
from xlalite.hlo.types.decision import Decision, Number

STAGE = "compilation"
REMEMBERED_SIGNATURES = 256
STRUCTURE_CHANGED = "the structure or a static argument changed"


class CompilationHistory:
    """What one cluster or function was compiled for, the latest signatures, and what was decided each time.

    Attributes:
        decisions: Everything that was decided, in order.
        seconds: How long compiling took.
    """

    def __init__(self, name: str) -> None:
        self.decisions: list[Decision] = []
        self.seconds = 0.0
        self._name = name
        self._signatures: deque[Signature] = deque(maxlen=REMEMBERED_SIGNATURES)

    def explain(self, arguments: Sequence[str], signature: Signature) -> Decision:
        """The record of a compilation that is about to begin; arguments as for `explain_compilation`."""
        earlier = [each for each in tuple(self._signatures) if len(each) == len(signature)]
        return explain_compilation(self._name, arguments, signature, earlier)

    def add(self, signature: Signature, *decisions: Decision) -> None:
        """Notes a compilation that is done, and what was decided."""
        self._signatures.append(signature)
        self.decisions += decisions


def explain_compilation(
    cluster: str, arguments: Sequence[str], signature: Signature, earlier: Sequence[Signature]
) -> Decision:
    """The record of a compilation.

    Args:
        cluster: Name of the cluster.
        arguments: Name of the argument behind each element of a signature after the first, which says what else
            decides: the structure of the arguments, and static ones.
        signature: What it is compiled for: sizes of arrays, perhaps with the name of their element type behind them,
            and of variables (None for a variable without a value), (sizes, bytes) of values that must be known.
        earlier: What it was compiled for before.
    """
    if not earlier:
        return Decision(STAGE, (cluster,), "compiled", "first signature")
    if signature in earlier:
        return Decision(STAGE, (cluster,), "compiled again", "it had been dropped from the cache")
    nearest = min(reversed(earlier), key=lambda other: len(_differences(signature, other)))
    changed = _differences(signature, nearest)
    if 0 in changed:
        return Decision(STAGE, (cluster,), "compiled again", STRUCTURE_CHANGED)
    names = tuple(arguments[position - 1] for position in changed)
    found, before = signature[changed[0]], nearest[changed[0]]
    return Decision(
        STAGE, (cluster, *names), "compiled again", _reason(found, before), _numbers(found, before, len(changed))
    )


def _differences(signature: Signature, other: Signature) -> list[int]:
    return [i for i, (mine, theirs) in enumerate(zip(signature, other, strict=True)) if mine != theirs]


def _reason(found: object, before: object) -> str:
    if _is_value(found):
        return "the value of a compile-time constant changed"
    if found is None or before is None:
        return "a variable lost its value" if found is None else "a variable got a value"
    same_sizes = isinstance(found, tuple) and isinstance(before, tuple) and _sizes(found) == _sizes(before)
    return f"the {'element type' if same_sizes else 'shape'} of an argument changed"


def _numbers(found: object, before: object, count: int) -> dict[str, Number]:
    numbers: dict[str, Number] = {"arguments that differ": count}
    if not _is_value(found):
        numbers |= {"before": _dims_text(before), "now": _dims_text(found)}
    if isinstance(found, tuple) and isinstance(before, tuple) and not _is_value(found):
        pairs = list(zip(_sizes(found), _sizes(before), strict=False))
        dims = [i for i, (mine, theirs) in enumerate(pairs) if mine != theirs]
        if dims and len(_sizes(found)) == len(_sizes(before)):
            numbers["dimension"] = dims[0]
    return numbers


def _is_value(entry: object) -> bool:
    return isinstance(entry, tuple) and bool(entry) and isinstance(entry[-1], bytes)


def _sizes(entry: tuple[object, ...]) -> tuple[object, ...]:
    return entry[:-1] if entry and isinstance(entry[-1], str) else entry


def _dims_text(entry: object) -> str:
    if not isinstance(entry, tuple):
        return "none"
    sizes = _sizes(entry)
    return "".join(map(str, entry[len(sizes) :])) + "[" + ",".join(map(str, sizes)) + "]"
