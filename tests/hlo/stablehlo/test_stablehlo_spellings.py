"""Every HLO operation can be said in StableHLO, or a reason stands here."""

import pytest

from xlalite.hlo.ops import OPS
from xlalite.hlo.stablehlo.rules.table import RULES

# What StableHLO calls by another name.
OTHERWISE = {
    "call": "func.call",
    "conditional": "stablehlo.if",
    "opt-barrier": "stablehlo.optimization_barrier",
    "topk": "chlo.top_k",
}
_IN_TWO = "of operations in two halves StableHLO has a general one: XLA splits others after import"
_OF_COMPILER = "made by passes of the compiler, never by programs"
_BOUNDED = "sizes that vary while a program runs are not read"
WITHOUT = {
    **dict.fromkeys(
        [
            *("all-gather-start", "all-gather-done", "all-reduce-start", "all-reduce-done", "collective-permute-start"),
            *("collective-permute-done", "copy-start", "copy-done", "async-update"),
            *("send-done", "recv-done"),
        ],
        _IN_TWO,
    ),
    **dict.fromkeys(
        ["add-dependency", "bitcast", "domain", "fusion", "rng-get-and-update-state", "scaled-dot"], _OF_COMPILER
    ),
    "parameter": "an argument of a function",
    "set-dimension-size": _BOUNDED,
    "ragged-all-to-all": "a custom call in StableHLO",
    "ragged-dot": "chlo.ragged_dot is not read yet",
    "scan": "chlo.scan is not read yet",
    "stochastic-convert": "only MHLO had it, and nobody writes MHLO today",
}


def spellings(opcode: str) -> list[str]:
    name = opcode.replace("-", "_")
    return [spelling for spelling in (f"stablehlo.{name}", f"chlo.{name}") if spelling in RULES]


@pytest.mark.parametrize("opcode", OPS)
def test_an_operation_has_a_spelling_or_a_reason(opcode: str) -> None:
    found = [*spellings(opcode), *([OTHERWISE[opcode]] if opcode in OTHERWISE else [])]
    assert bool(found) != (opcode in WITHOUT), f"{opcode}: found {found}, and the reason {WITHOUT.get(opcode)!r}"
    assert all(spelling in RULES for spelling in found)


def test_lists_name_operations() -> None:
    assert OTHERWISE.keys() | WITHOUT.keys() <= OPS.keys()


def test_what_is_no_function_of_elements_is_not_spelled_by_itself() -> None:
    # `convert` is elementwise, but its element type is written: the derived rule would not know it.
    assert RULES["stablehlo.convert"].__qualname__ == "_convert"
