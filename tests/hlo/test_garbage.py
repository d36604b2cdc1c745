import gc
import sys
from types import ModuleType

import pytest

from xlalite.hlo.garbage import few_collections


@pytest.fixture(autouse=True)
def usual_threshold():
    threshold = gc.get_threshold()
    yield
    gc.set_threshold(*threshold)


def test_collections_are_few_until_the_outermost_is_done():
    usual = gc.get_threshold()
    with few_collections:
        with few_collections:
            pass
        assert gc.get_threshold()[0] > 10 * usual[0]
        assert gc.isenabled()
    assert gc.get_threshold() == usual


def test_what_others_set_meanwhile_stays():
    with few_collections:
        gc.set_threshold(5, 6, 7)
    assert gc.get_threshold() == (5, 6, 7)


def test_collections_that_are_off_stay_off():
    gc.set_threshold(0, 10, 10)
    with few_collections:
        assert gc.get_threshold() == (0, 10, 10)
    assert gc.get_threshold() == (0, 10, 10)


def test_what_imports_leave_behind_is_old(monkeypatch):
    gc.collect()
    with few_collections:
        for number in range(50):
            monkeypatch.setitem(sys.modules, f"imported_{number}", ModuleType("imported"))
        made = [[number] for number in range(1000)]
    young = gc.get_objects(generation=0)
    assert not any(one is made for one in young)
    assert any(one is made for one in gc.get_objects(generation=2))


def test_what_a_program_froze_stays_frozen(monkeypatch):
    gc.freeze()
    with few_collections:
        for number in range(50):
            monkeypatch.setitem(sys.modules, f"imported_{number}", ModuleType("imported"))
    assert gc.get_freeze_count()
    gc.unfreeze()


def test_objects_stay_young_where_nothing_is_imported():
    gc.collect()
    with few_collections:
        made = [[number] for number in range(10)]
    assert any(one is made for one in gc.get_objects(generation=0))
