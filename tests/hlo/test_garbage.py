import gc

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
