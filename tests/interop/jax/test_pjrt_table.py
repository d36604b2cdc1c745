"""The machine code of the PJRT table, called as a client would."""

from __future__ import annotations

import ctypes
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from xlalite.backends.cpu.native.pjrt.abi import ARGUMENTS, ELEMENT_TYPES, FUNCTIONS, Semantics
from xlalite.backends.cpu.native.pjrt.native import Native, native
from xlalite.backends.cpu.native.pjrt.records import Buffer
from xlalite.interop.jax.answers import Refusal
from xlalite.interop.jax.platform import platform
from xlalite.interop.jax.registry import FUNCTIONS as IN_PYTHON
from xlalite.interop.jax.table import capsule

ITEM = ELEMENT_TYPES.index("f32")


@pytest.fixture(scope="module")
def code() -> Native:
    assert capsule() is not None
    return native()


def call(code: Native, name: str, **values: Any) -> Any:
    """The arguments after the call, which must not give an error."""
    arguments, error = try_call(code, name, **values)
    assert error == ""
    return arguments


def try_call(code: Native, name: str, **values: Any) -> tuple[Any, str]:
    """The arguments after the call, and its error."""
    arguments = ARGUMENTS[name](struct_size=ctypes.sizeof(ARGUMENTS[name]), **values)
    function = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(code.address(name))
    error = function(ctypes.addressof(arguments))
    if error is None:
        return arguments, ""
    message = call(code, "Error_Message", error=error)
    text = ctypes.string_at(message.message, message.message_size).decode()
    call(code, "Error_Destroy", error=error)
    return arguments, text


def buffer_of(code: Native, array: np.ndarray, semantics: Semantics, strides: tuple[int, ...] | None = None) -> Any:
    dims = (ctypes.c_int64 * max(1, array.ndim))(*array.shape)
    steps = (ctypes.c_int64 * max(1, array.ndim))(*(strides or ()))
    return call(
        code,
        "Client_BufferFromHostBuffer",
        data=array.ctypes.data,
        type=ITEM,
        dims=ctypes.addressof(dims),
        rank=array.ndim,
        strides=None if strides is None else ctypes.addressof(steps),
        num_strides=len(strides or ()),
        semantics=semantics,
    )


def contents(code: Native, buffer: int, dims: tuple[int, ...]) -> np.ndarray:
    size = call(code, "Buffer_ToHostBuffer", buffer=buffer).size
    target = np.zeros(dims, np.float32)
    assert size == target.nbytes
    call(code, "Buffer_ToHostBuffer", buffer=buffer, target=target.ctypes.data, size=size)
    return target


def test_a_lack_of_memory_is_an_error(code: Native) -> None:
    endless, before = 1 << 56, code.shared.bytes_in_use
    for _ in range(2):  # destroying the error leaves it there for the next time
        error = code.new_error(13, b"", endless)
        message = call(code, "Error_Message", error=error)
        assert b"no memory" in ctypes.string_at(message.message, message.message_size)
        assert call(code, "Error_GetCode", error=error).code == 13
        call(code, "Error_Destroy", error=error)
    assert code.new_block(endless) is None
    sizes = (ctypes.c_int64 * 1)(4)
    described = (16, ITEM, endless, ctypes.addressof(sizes), platform().memories[0]["device"])
    assert code.new_buffer(code.new_block(16), *described) is None
    assert code.shared.bytes_in_use == before


@pytest.mark.parametrize("dims", [(), (0,), (3,), (2, 0, 3), (4, 5), (1, 1)])
def test_arrays_go_in_and_out(code: Native, dims: tuple[int, ...]) -> None:
    array = np.arange(np.prod(dims, dtype=int), dtype=np.float32).reshape(dims)
    before = code.shared.bytes_in_use
    made = buffer_of(code, array, Semantics.ONLY_DURING_CALL, array.strides)
    shape = call(code, "Buffer_Dimensions", buffer=made.buffer)
    assert tuple((ctypes.c_int64 * shape.rank).from_address(shape.dims)) == dims
    assert call(code, "Event_IsReady", event=made.done_with_host_buffer).is_ready == 1
    kept = array.copy()
    array[...] = -1
    np.testing.assert_array_equal(contents(code, made.buffer, dims), kept)
    copy = call(code, "Buffer_CopyToDevice", buffer=made.buffer, device=platform().devices[0]).result
    call(code, "Buffer_Destroy", buffer=made.buffer)
    np.testing.assert_array_equal(contents(code, copy, dims), kept)
    call(code, "Buffer_Destroy", buffer=copy)
    assert code.shared.bytes_in_use == before


def test_memory_of_the_host_is_used_until_the_last_owner_lets_go(code: Native) -> None:
    memory = np.zeros(68, np.float32)
    start = -memory.ctypes.data % 16 // 4
    array, calls = memory[start : start + 64], []
    array[:] = np.arange(64)
    made = buffer_of(code, array, Semantics.ZERO_COPY)
    assert call(code, "Buffer_UnsafePointer", buffer=made.buffer).pointer == array.ctypes.data
    assert call(code, "Event_IsReady", event=made.done_with_host_buffer).is_ready == 0
    callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(lambda error, argument: calls.append(argument))
    address = ctypes.cast(callback, ctypes.c_void_p).value
    for number in (7, 8, 9):
        call(code, "Event_OnReady", event=made.done_with_host_buffer, callback=address, user_arg=number)
    call(code, "Event_Destroy", event=made.done_with_host_buffer)
    call(code, "Buffer_IncreaseExternalReferenceCount", buffer=made.buffer)
    call(code, "Buffer_Delete", buffer=made.buffer)
    call(code, "Buffer_Delete", buffer=made.buffer)
    assert call(code, "Buffer_IsDeleted", buffer=made.buffer).is_deleted == 1
    assert calls == []
    call(code, "Buffer_DecreaseExternalReferenceCount", buffer=made.buffer)
    assert sorted(calls) == [7, 8, 9]
    call(code, "Buffer_Destroy", buffer=made.buffer)
    assert sorted(calls) == [7, 8, 9]


def test_all_who_wait_for_an_event_are_called_once(code: Native) -> None:
    memory, calls = np.zeros(68, np.float32), []
    start = -memory.ctypes.data % 16 // 4
    callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(lambda error, argument: calls.append(argument))
    address, numbers = ctypes.cast(callback, ctypes.c_void_p).value, range(1, 41)
    for _ in range(20):
        made = buffer_of(code, memory[start : start + 64], Semantics.ZERO_COPY)
        event = made.done_with_host_buffer
        with ThreadPoolExecutor(4) as pool:
            waits = [
                pool.submit(call, code, "Event_OnReady", event=event, callback=address, user_arg=number)
                for number in numbers
            ]
            call(code, "Buffer_Destroy", buffer=made.buffer)
            for wait in waits:
                wait.result()
        call(code, "Event_Destroy", event=event)
        assert sorted(calls) == list(numbers)
        calls.clear()


def test_unaligned_memory_is_copied(code: Native) -> None:
    memory = np.zeros(16, np.float32)
    start = -memory.ctypes.data % 16 // 4
    array = memory[start + 1 : start + 9]
    made = buffer_of(code, array, Semantics.ZERO_COPY)
    record = Buffer.from_address(made.buffer)
    assert record.data != array.ctypes.data
    assert record.size_bytes == 32
    call(code, "Buffer_Destroy", buffer=made.buffer)


@pytest.mark.parametrize("view", [lambda x: x[::2], lambda x: x[:, ::-1], lambda x: x.T, lambda x: x[1:, 2:3]])
def test_arrays_with_strides_are_read_as_they_are(code: Native, view: Any) -> None:
    array = view(np.arange(24, dtype=np.float32).reshape(4, 6))
    made = buffer_of(code, array, Semantics.ZERO_COPY, array.strides)
    np.testing.assert_array_equal(contents(code, made.buffer, array.shape), array)
    call(code, "Buffer_Destroy", buffer=made.buffer)


def test_deleted_arrays_are_not_read(code: Native) -> None:
    array, target = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    before = code.shared.bytes_in_use
    made = buffer_of(code, array, Semantics.ONLY_DURING_CALL).buffer
    call(code, "Buffer_Delete", buffer=made)
    address, device = target.ctypes.data, platform().devices[0]
    for name, values in (
        ("Buffer_ToHostBuffer", {"target": address, "size": 32}),
        ("Buffer_CopyRawToHost", {"target": address, "size": 32}),
        ("Buffer_CopyToDevice", {"device": device}),
        ("Buffer_IncreaseExternalReferenceCount", {}),
    ):
        assert try_call(code, name, buffer=made, **values)[1] == "an array was deleted or donated before"
    call(code, "Buffer_Destroy", buffer=made)
    assert code.shared.bytes_in_use == before


def test_arrays_without_memory_are_refused(code: Native) -> None:
    dims, one = (ctypes.c_int64 * 1)(1 << 60), ctypes.c_float()
    described = {"type": ITEM, "dims": ctypes.addressof(dims), "rank": 1, "data": ctypes.addressof(one)}
    error = try_call(code, "Client_BufferFromHostBuffer", semantics=Semantics.ONLY_DURING_CALL, **described)[1]
    assert error == "there is no memory for an array"


def test_bytes_outside_an_array_are_refused(code: Native) -> None:
    array, target = np.arange(8, dtype=np.float32), np.full(9, -1, np.float32)
    made, place = buffer_of(code, array, Semantics.ONLY_DURING_CALL).buffer, target.ctypes.data
    for name, values in (
        ("Buffer_ToHostBuffer", {"size": 31}),
        ("Buffer_CopyRawToHost", {"offset": 4, "size": 29}),
        ("Buffer_CopyRawToHost", {"offset": 33, "size": 0}),
        ("Buffer_CopyRawToHost", {"offset": -4, "size": 8}),
    ):
        assert try_call(code, name, buffer=made, target=place, **values)[1] == "bytes outside an array were asked for"
    call(code, "Buffer_CopyRawToHost", buffer=made, target=place, offset=4, size=28)
    np.testing.assert_array_equal(target, [1, 2, 3, 4, 5, 6, 7, -1, -1])
    call(code, "Buffer_Destroy", buffer=made)


@pytest.mark.parametrize("kind", [0, ELEMENT_TYPES.index("token"), len(ELEMENT_TYPES), 1 << 20, -1])
def test_elements_of_unknown_types_are_refused(code: Native, kind: int) -> None:
    dims, one = (ctypes.c_int64 * 1)(1), ctypes.c_double()
    described = {"type": kind, "dims": ctypes.addressof(dims), "rank": 1, "data": ctypes.addressof(one)}
    error = try_call(code, "Client_BufferFromHostBuffer", semantics=Semantics.ONLY_DURING_CALL, **described)[1]
    assert error == "arrays with elements of this type are not known"


def test_answers_leave_nothing_as_it_was(code: Native) -> None:
    kind = ARGUMENTS["Device_MemoryStats"]
    arguments = kind()
    ctypes.memset(ctypes.addressof(arguments), 0xFF, ctypes.sizeof(kind))
    arguments.struct_size, arguments.device = ctypes.sizeof(kind), platform().devices[0]
    IN_PYTHON["Device_MemoryStats"](arguments)
    assert arguments.in_use == code.shared.bytes_in_use
    assert arguments.peak_is_set == arguments.peak_pool_is_set == 0


def test_every_function_is_somewhere() -> None:
    offered = {name for name in FUNCTIONS if name in ARGUMENTS}
    missing = offered - set(native().names) - set(IN_PYTHON)
    assert missing == set()


@pytest.mark.parametrize("number", [-1, 10_000])
def test_devices_that_are_not_there_are_refused(code: Native, number: int) -> None:
    arguments = ARGUMENTS["Client_LookupDevice"](id=number)
    with pytest.raises(Refusal, match=f"there is no device {number}"):
        IN_PYTHON["Client_LookupDevice"](arguments)
