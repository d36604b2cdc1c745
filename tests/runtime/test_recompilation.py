"""The record of a compilation says which argument differs from the nearest signature."""

from xlalite.runtime.recompilation import explain_compilation

NAMES = ["x:0", "n:0", "w"]


def signature(x: tuple[int, ...], n: bytes = b"1", w: tuple[int, ...] | None = (3,)) -> tuple[object, ...]:
    return (7, x, (n,), w)


def test_first_signature() -> None:
    decision = explain_compilation("cluster_0", NAMES, signature((2,)), [])
    assert (decision.verdict, decision.reason) == ("compiled", "first signature")


def test_changed_dimension_is_named() -> None:
    decision = explain_compilation("cluster_0", NAMES, signature((360, 4)), [signature((100, 4))])
    assert decision.subject == ("cluster_0", "x:0")
    assert decision.reason == "the shape of an argument changed"
    assert decision.numbers == {
        "arguments that differ": 1, "before": "[100,4]", "now": "[360,4]", "dimension": 0
    }  # fmt: skip


def test_nearest_signature_is_compared() -> None:
    earlier = [signature((5,), b"1"), signature((6,), b"2", None)]
    decision = explain_compilation("cluster_0", NAMES, signature((6,), b"1"), earlier)
    assert decision.subject == ("cluster_0", "x:0")


def test_constants_and_variables_have_reasons_of_their_own() -> None:
    changed = explain_compilation("cluster_0", NAMES, signature((5,), b"2"), [signature((5,), b"1")])
    assert changed.subject == ("cluster_0", "n:0")
    assert changed.reason == "the value of a compile-time constant changed"
    assigned = explain_compilation("cluster_0", NAMES, signature((5,)), [signature((5,), w=None)])
    assert assigned.reason == "a variable got a value"


def test_dropped_entry_is_recognised() -> None:
    decision = explain_compilation("cluster_0", NAMES, signature((5,)), [signature((5,))])
    assert decision.reason == "it had been dropped from the cache"
