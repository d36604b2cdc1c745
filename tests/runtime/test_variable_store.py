"""Values of variables: who may overwrite an array, and when it is copied."""

import numpy as np

import xlalite as tf
from xlalite.runtime.variables import VariableStore


def test_array_that_was_handed_out_is_copied_before_it_is_overwritten() -> None:
    store = VariableStore()
    with store.lock:
        store.put("v", np.zeros(2))
    seen = store.read_variable("v")
    with store.lock:
        value = store.find("v")
        assert value is not None
        own = store.exclusive("v", value)
        assert own.array is not seen
        assert store.find("v") is own


def test_array_of_its_own_is_overwritten_in_place() -> None:
    store = VariableStore()
    with store.lock:
        store.put("v", np.zeros(2))
        value = store.find("v")
        assert value is not None
        assert store.exclusive("v", value) is value
        value.readers = 1
        assert store.exclusive("v", value) is not value


def test_assigned_arrays_are_made_fit_for_native_code() -> None:
    store = VariableStore()
    store.assign_variable("v", np.broadcast_to(np.float32(1), (2, 3)))
    found = store.read_variable("v")
    assert found is not None
    assert found.flags.c_contiguous
    assert found.flags.writeable
    assert store.read_variable("w") is None


def test_store_knows_its_names_and_size_and_can_be_closed() -> None:
    store = VariableStore()
    store.assign_variable("v", np.zeros(4, np.float32))
    assert store.names() == ("v",)
    assert store.size_bytes == 16
    store.close()
    assert store.names() == ()


def test_state_is_made_once_for_each_operation() -> None:
    store = VariableStore()
    a, b = tf.constant(1).op, tf.constant(2).op
    assert store.state(a, list) is store.state(a, list)
    assert store.state(a, list) is not store.state(b, list)
