"""What is made for a signature is made once, kept within bounds, and dropped by age."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from xlalite.framework.meaning.signatures import SignatureCache


def test_what_is_made_is_kept_and_counted() -> None:
    cache: SignatureCache[str] = SignatureCache(size_of=len)
    assert cache.find("a") is None
    assert cache.obtain("a", lambda: "first") == "first"
    assert cache.obtain("a", lambda: "second") == "first"
    assert cache.find("a") == "first"
    statistics = cache.statistics()
    assert (statistics.entries, statistics.size_bytes, statistics.compilations, statistics.evictions) == (1, 5, 1, 0)
    assert statistics.compile_seconds > 0
    cache.clear()
    assert cache.made() == ()
    assert cache.statistics().size_bytes == 0


def test_two_threads_that_ask_for_one_signature_make_it_once() -> None:
    cache: SignatureCache[str] = SignatureCache()
    both_make = threading.Barrier(2)
    makers: list[int] = []

    def make() -> str:
        makers.append(threading.get_ident())
        try:
            both_make.wait(timeout=0.3)
        except threading.BrokenBarrierError:
            return "made alone"
        return "made twice"

    with ThreadPoolExecutor(2) as threads:
        found = [future.result() for future in [threads.submit(cache.obtain, "a", make) for _ in range(2)]]
    assert found == ["made alone"] * 2
    assert len(makers) == 1


def test_other_signatures_do_not_wait() -> None:
    cache: SignatureCache[str] = SignatureCache()
    began, finish = threading.Event(), threading.Event()

    def make() -> str:
        began.set()
        assert finish.wait(timeout=10), "another signature waited for this one"
        return "slow"

    with ThreadPoolExecutor(1) as threads:
        slow = threads.submit(cache.obtain, "slow", make)
        assert began.wait(timeout=10)
        assert cache.obtain("quick", lambda: "quick") == "quick"
        finish.set()
        assert slow.result() == "slow"


def test_making_one_may_ask_for_another() -> None:
    cache: SignatureCache[str] = SignatureCache()
    assert cache.obtain("outer", lambda: cache.obtain("inner", lambda: "made inside")) == "made inside"
    assert cache.statistics().compilations == 2


def test_error_leaves_nothing_behind() -> None:
    cache: SignatureCache[float] = SignatureCache()
    with pytest.raises(ZeroDivisionError):
        cache.obtain("a", lambda: 1 / 0)
    assert cache.statistics().compilations == 0
    assert cache.obtain("a", lambda: 2.0) == 2.0


def test_beyond_its_bound_the_least_recently_used_go() -> None:
    cache: SignatureCache[int] = SignatureCache(most=16)
    for signature in range(16):
        cache.obtain(signature, lambda: 0)
    cache.find(0)
    assert cache.statistics().evictions == 0
    cache.obtain(16, lambda: 0)
    assert [signature for signature in range(17) if cache.find(signature) is None] == [1, 2, 3]
    assert cache.statistics().entries == 14


def test_limit_of_bytes_spares_the_latest_entry() -> None:
    cache: SignatureCache[str] = SignatureCache(limit_bytes=5, size_of=len)
    for text in ("ab", "cd", "efghijk"):
        cache.obtain(text, lambda text=text: text)  # type: ignore[misc]  # bound now
    assert cache.made() == ("efghijk",)
    assert cache.statistics().size_bytes == 7
