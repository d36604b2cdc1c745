"""The meaning of a call, the same for the native and the Python path."""

import pickle
import signal
import threading

import ml_dtypes
import numpy as np
import pytest

from xlalite.backends.cpu.native.call.arguments import to_arrays
from xlalite.backends.cpu.native.call.dispatch import MAX_NATIVE_ARRAYS, NativeCall, make_call
from xlalite.backends.cpu.native.call.numpy_interface import ObjectLayout, layout_holds, numpy_interface
from xlalite.backends.cpu.native.call.python_call import PythonCall
from xlalite.backends.cpu.native.call.signature import CallSignature, EntryPoint
from xlalite.backends.cpu.native.thread_pool import get_pool
from xlalite.hlo.errors import ArgumentError, CodegenError, ExecutionError
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.shape import Shape

ARRAY_TYPES = [dtype for dtype in DType if dtype.is_array]
F32_8 = Shape.array(DType.F32, (8,))


def sample(shape: Shape) -> np.ndarray:
    """Bytes of any kind, made into valid values for pred and types under 8 bits."""
    bits = np.arange(1, shape.size_bytes + 1, dtype=np.uint8)
    if shape.dtype.bits < 8 or shape.dtype is DType.PRED:
        bits &= 1
    return bits.view(shape.dtype.numpy)[: shape.element_count].reshape(shape.dims).copy()


def bits(array: np.ndarray) -> bytes:
    return np.ascontiguousarray(array).tobytes()


@pytest.fixture
def add(build_call, entry_texts):
    return build_call(entry_texts.add(8), [F32_8, F32_8], [F32_8])


@pytest.mark.parametrize("dims", [(), (1,), (5,), (2, 3), (0,), (3, 0, 2), (1, 2, 1, 3, 1)], ids=str)
def test_dims_come_back(build_call, entry_texts, dims):
    shape = Shape.array(DType.F64, dims)
    call = build_call(entry_texts.copy([shape.size_bytes]), [shape], [shape])
    array = sample(shape)
    result = call.function()(array)
    assert type(result) is np.ndarray
    assert (result.shape, result.dtype) == (array.shape, array.dtype)
    assert bits(result) == bits(array)
    assert result.flags.owndata
    assert result.flags.writeable


@pytest.mark.parametrize("dtype", ARRAY_TYPES, ids=lambda dtype: dtype.value)
def test_every_element_type_passes(build_call, entry_texts, dtype):
    shape = Shape.array(dtype, (3, 2))
    call = build_call(entry_texts.copy([shape.size_bytes]), [shape], [shape])
    array = sample(shape)
    result = call.function()(array)
    assert result.dtype == array.dtype
    assert bits(result) == bits(array)


def test_results_come_as_declared(build_call, entry_texts):
    shapes = [F32_8, Shape.array(DType.S32, ()), Shape.array(DType.BF16, (2, 2))]
    call = build_call(entry_texts.copy([shape.size_bytes for shape in shapes]), shapes, shapes, returns_tuple=True)
    arrays = [sample(shape) for shape in shapes]
    results = call.function()(*arrays)
    assert type(results) is tuple
    assert [bits(result) for result in results] == [bits(array) for array in arrays]


def test_tuples_of_one_and_none(build_call, entry_texts):
    one = build_call(entry_texts.copy([32]), [F32_8], [F32_8], returns_tuple=True)
    (result,) = one.function()(np.ones(8, np.float32))
    assert result.sum() == 8
    nothing = build_call(entry_texts.copy([]), [], [], returns_tuple=True)
    assert nothing.function()() == ()


UNUSUAL = {
    "list": lambda a: a.tolist(),
    "subclass": lambda a: a.view(np.recarray),
    "strided": lambda a: np.repeat(a, 2)[::2],
    "reversed": lambda a: a[::-1].copy()[::-1],
    "foreign byte order": lambda a: a.astype(a.dtype.newbyteorder()),
    "unaligned": lambda a: np.frombuffer(b"x" + a.tobytes(), np.uint8)[1:].view(a.dtype),
    "read only": lambda a: np.frombuffer(a.tobytes(), a.dtype),
    "pickled": lambda a: pickle.loads(pickle.dumps(a)),
    "dtype with metadata": lambda a: a.astype(np.dtype(a.dtype, metadata={"unit": "m"})),
    "array interface": lambda a: type("Wrapped", (), {"__array__": lambda self, dtype=None, copy=None: a})(),
}


@pytest.mark.parametrize("kind", UNUSUAL)
def test_unusual_arguments_mean_the_same(add, kind):
    a, b = np.arange(8, dtype=np.float32), np.full(8, 0.5, np.float32)
    result = add.function()(UNUSUAL[kind](a), b)
    assert type(result) is np.ndarray
    assert (result == a + b).all()


def test_column_major_array_keeps_its_meaning(build_call, entry_texts):
    shape = Shape.array(DType.S16, (3, 4))
    call = build_call(entry_texts.copy([shape.size_bytes]), [shape], [shape])
    array = np.asfortranarray(sample(shape))
    assert (call.function()(array) == array).all()


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        (DType.F32, 2),
        (DType.F32, 2.5),
        (DType.F32, True),
        (DType.F32, np.float32(2.5)),
        (DType.C64, 2.5),
        (DType.BF16, 1.5),
        (DType.F8E4M3FN, 1.5),
        (DType.S8, -128),
        (DType.U8, 255),
        (DType.S4, -8),
        (DType.U64, 2**64 - 1),
        (DType.PRED, True),
    ],
    ids=lambda value: repr(value) if not isinstance(value, DType) else value.value,
)
def test_numbers_are_scalars(build_call, entry_texts, dtype, value):
    shape = Shape.array(dtype, ())
    result = build_call(entry_texts.copy([shape.size_bytes]), [shape], [shape]).function()(value)
    assert type(result) is np.ndarray
    assert result.shape == ()
    assert result == np.asarray(value).astype(dtype.numpy)


WRONG = {
    "too few": ((np.ones(8, np.float32),), r"tested: 1 arguments given, 2 expected \(f32\[8\], f32\[8\]\)"),
    "none": ((), "tested: 0 arguments given, 2 expected"),
    "too many": ((1, 2, 3), "tested: 3 arguments given, 2 expected"),
    "length": ((np.ones(8, np.float32), np.ones(7, np.float32)), r"argument 1 is f32\[7\]; expected f32\[8\]"),
    "rank": ((np.ones((8, 1), np.float32), np.ones(8, np.float32)), r"argument 0 is f32\[8,1\]; expected f32\[8\]"),
    "scalar": ((np.ones(8, np.float32), 1.0), r"argument 1 is f32\[\]; expected f32\[8\]"),
    "dtype": ((np.ones(8), np.ones(8, np.float32)), r"argument 0 is f64\[8\]; expected f32\[8\]"),
    "numpy scalar": ((np.ones(8, np.float32), np.float64(1)), r"argument 1 is f64\[\]; expected f32\[8\]"),
    "strings": ((np.ones(8, np.float32), ["a"] * 8), r"argument 1 is \['a'.*expected f32\[8\]"),
    "ragged": ((np.ones(8, np.float32), [[1], [2, 3]]), r"argument 1 is \[\[1\], \[2, 3\]\]; expected f32\[8\]"),
    "object": ((np.ones(8, np.float32), None), "argument 1 is an array of object"),
    "complex": ((np.ones(8, np.float32), [1j] * 8), r"\(c128\); expected f32\[8\]"),
    "masked": ((np.ones(8, np.float32), np.ma.masked_array(np.ones(8, np.float32))), "is a masked array"),
}


@pytest.mark.parametrize("case", WRONG)
def test_arguments_that_do_not_fit_are_refused(add, case):
    arguments, message = WRONG[case]
    with pytest.raises(ArgumentError, match=message):
        add.function()(*arguments)


@pytest.mark.parametrize(("dtype", "value"), [(DType.S8, 128), (DType.U8, -1), (DType.S4, 8), (DType.U64, 2**64)])
def test_integers_that_do_not_fit_are_refused(build_call, entry_texts, dtype, value):
    shape = Shape.array(dtype, ())
    call = build_call(entry_texts.copy([shape.size_bytes]), [shape], [shape])
    with pytest.raises(ArgumentError, match=rf"argument 0 is {value}"):
        call.function()(value)


def test_keywords_are_refused(add):
    with pytest.raises(TypeError):
        add.function()(a=1, b=2)


def test_other_type_of_equal_size_is_not_mistaken(build_call, entry_texts):
    shape = Shape.array(DType.BF16, (4,))
    call = build_call(entry_texts.copy([8]), [shape], [shape])
    for other in (np.float16, np.int16, np.uint16):
        with pytest.raises(ArgumentError, match=r"expected bf16\[4\]"):
            call.function()(np.ones(4, other))
    assert call.function()(np.ones(4, ml_dtypes.bfloat16)).dtype == ml_dtypes.bfloat16


def test_failure_of_native_code_is_an_error(build_call, entry_texts):
    for status, message in ((1, "tested: it went wrong"), (7, "tested: native code gave error 7")):
        call = build_call(entry_texts.status(status), [F32_8], [F32_8])
        with pytest.raises(ExecutionError, match=message):
            call.function()(np.ones(8, np.float32))
        with pytest.raises(ExecutionError, match=message):
            call.bind([0], [0])()
        with pytest.raises(ExecutionError, match=message):
            call.function_of_addresses()(0, 0)


def test_scratch_memory_that_does_not_exist_is_a_memory_error(build_call, entry_texts):
    call = build_call(entry_texts.status(0), [F32_8], [F32_8], arena_bytes=1 << 60)
    with pytest.raises(MemoryError):
        call.function()(np.ones(8, np.float32))


def test_interrupt_during_native_code_reaches_python(build_call):
    text = (
        "declare i32 @raise(i32)\n"
        "define i32 @entry(ptr %params, ptr %results, ptr %arena, ptr %context) {\n"
        f"  %unused = call i32 @raise(i32 {int(signal.SIGINT)})\n  ret i32 0\n}}\n"
    )
    call = build_call(text, [], [], returns_tuple=True, releases_lock=True)
    with pytest.raises(KeyboardInterrupt):
        call.function()()


def test_donated_argument_is_the_result(build_call, entry_texts):
    call = build_call(entry_texts.add(8), [F32_8, F32_8], [F32_8], donations=[(0, 0)])
    a, b = np.arange(8, dtype=np.float32), np.ones(8, np.float32)
    result = call.function()(a, b)
    assert result is a
    assert (a == np.arange(8) + 1).all()


def test_argument_that_is_not_donated_is_left_alone(build_call, entry_texts):
    call = build_call(entry_texts.add(8), [F32_8, F32_8], [F32_8], donations=[(1, 0)])
    a, b = np.arange(8, dtype=np.float32), np.ones(8, np.float32)
    assert call.function()(a, b) is b
    assert (a == np.arange(8)).all()


UNFIT_FOR_DONATION = {
    "read only": lambda: np.frombuffer(np.ones(8, np.float32).tobytes(), np.float32),
    "strided": lambda: np.ones(16, np.float32)[::2],
    "list": lambda: [1.0] * 8,
    "foreign byte order": lambda: np.ones(8, np.dtype(np.float32).newbyteorder()),
}


@pytest.mark.parametrize("kind", UNFIT_FOR_DONATION)
def test_argument_that_cannot_be_overwritten_is_copied(build_call, entry_texts, kind):
    call = build_call(entry_texts.add(8), [F32_8, F32_8], [F32_8], donations=[(0, 0)])
    a = UNFIT_FOR_DONATION[kind]()
    result = call.function()(a, np.ones(8, np.float32))
    assert (result == 2).all()
    assert (np.asarray(a) == 1).all()


def test_donated_argument_that_another_one_sees_is_copied(build_call, entry_texts):
    call = build_call(entry_texts.add(8), [F32_8, F32_8], [F32_8], donations=[(0, 0)])
    a = np.ones(12, np.float32)
    for donated, other in ((a[:8], a[:8]), (a[:8], a[4:]), (a[4:], a[:8])):
        result = call.function()(donated, other)
        assert (result == 2).all()
        assert (a == 1).all()
    left, right = np.ones((2, 8), np.float32)  # neighbours share nothing
    assert call.function()(left, right) is left


@pytest.mark.parametrize("releases_lock", [False, True])
def test_concurrent_calls_have_arenas_of_their_own(build_call, entry_texts, releases_lock):
    shape = Shape.array(DType.S64, (200,))
    call = build_call(
        entry_texts.copy_through_arena(1600), [shape], [shape], arena_bytes=1600, releases_lock=releases_lock
    )
    function = call.function()
    wrong: list[int] = []

    def work(number: int) -> None:
        array = np.full(200, number)
        wrong.extend(number for _ in range(300) if not (function(array) == number).all())

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_arena_is_aligned(build_call):
    text = (
        "define i32 @entry(ptr %params, ptr %results, ptr %arena, ptr %context) {\n"
        "  %r = load ptr, ptr %results\n  store ptr %arena, ptr %r\n  ret i32 0\n}\n"
    )
    shape = Shape.array(DType.U64, ())
    for size in (1, 100, 5000):
        call = build_call(text, [], [shape], arena_bytes=size)
        address = int(call.function()())
        assert address
        assert address % 64 == 0


def test_addresses_can_be_called_directly_and_bound(add):
    a, b, r = (np.full(8, value, np.float32) for value in (1, 2, 0))
    add.function_of_addresses()(a.ctypes.data, b.ctypes.data, r.ctypes.data)
    assert (r == 3).all()
    for wrong in ((a.ctypes.data,), (), (0,) * 4):
        with pytest.raises(ArgumentError, match=r"(arguments|addresses) given"):
            add.function_of_addresses()(*wrong)
    with pytest.raises(TypeError):
        add.function_of_addresses()("a", "b", "c")
    bound = add.bind([a.ctypes.data, r.ctypes.data], [r.ctypes.data])
    del add
    for _ in range(3):
        assert bound() is None
    assert (r == 6).all()


def test_context_carries_the_pool(build_call):
    text = (
        "define i32 @entry(ptr %params, ptr %results, ptr %arena, ptr %context) {\n"
        "  %r = load ptr, ptr %results\n  %pool = load ptr, ptr %context\n  store ptr %pool, ptr %r\n  ret i32 0\n}\n"
    )
    call = build_call(text, [], [Shape.array(DType.U64, ())])
    assert int(call.function()()) == get_pool(1).address == 0


@pytest.mark.parametrize(
    ("inputs", "outputs", "returns_tuple", "donations", "message"),
    [
        ([], [], False, (), "gives one array has 0 outputs"),
        ([F32_8], [F32_8], False, ((0, 0), (0, 0)), "an input is donated twice"),
        ([F32_8, F32_8], [F32_8], False, ((0, 0), (1, 0)), "an output is donated twice"),
        ([F32_8], [Shape.array(DType.F64, (8,))], False, ((0, 0),), "which has another shape"),
        ([Shape.token()], [F32_8], False, (), "only arrays of known sizes can be passed, found token"),
    ],
)
def test_signature_that_cannot_be_obeyed_is_refused(inputs, outputs, returns_tuple, donations, message):
    with pytest.raises(CodegenError, match=message):
        CallSignature(tuple(inputs), tuple(outputs), returns_tuple, donations)


def test_this_platform_takes_the_native_path(link_text, entry_texts):
    assert numpy_interface() is not None
    entry = EntryPoint(link_text(entry_texts.add(8)), "entry", get_pool(1))
    assert isinstance(make_call(CallSignature((F32_8, F32_8), (F32_8,)), entry), NativeCall)


def test_calls_with_very_many_arrays_take_the_python_path(link_text, entry_texts):
    count = MAX_NATIVE_ARRAYS + 1
    shape = Shape.array(DType.S8, ())
    entry = EntryPoint(link_text(entry_texts.copy([1])), "entry", get_pool(1))
    call = make_call(CallSignature((shape,) * count, (shape,)), entry)
    assert type(call) is PythonCall
    assert int(call.function()(*[3] * count)) == 3


@pytest.mark.parametrize("seed", range(6))
def test_overlaps_are_found_among_many_arguments(link_text, seed):
    """Each argument is a part of one array; the first result is the argument itself unless another one sees it."""
    rng = np.random.default_rng(seed)
    count = 200
    shapes = [Shape.array(DType.S8, (int(size),)) for size in rng.integers(0, 4, count)]
    text = "define i32 @entry(ptr %params, ptr %results, ptr %arena, ptr %context) {\n  ret i32 0\n}\n"
    entry = EntryPoint(link_text(text), "entry", get_pool(1))
    donated = sorted(rng.choice(count, 40, replace=False).tolist())
    outputs = tuple(shapes[i] for i in donated)
    signature = CallSignature(tuple(shapes), outputs, True, tuple((i, n) for n, i in enumerate(donated)))
    call = make_call(signature, entry)
    assert isinstance(call, NativeCall)
    sizes = [shape.dims[0] for shape in shapes]
    memory = np.zeros(8 * count, np.int8)
    for overlapping in (False, True):
        places = 8 * rng.permutation(count)
        if overlapping:
            first = next(i for i in donated if sizes[i] > 1)
            other = next(i for i in rng.permutation(count) if i != first and sizes[i] > 1)
            places[other] = places[first] + int(rng.integers(0, 2))
        arguments = [memory[place : place + size] for place, size in zip(places, sizes, strict=True)]
        results = call.function()(*arguments)
        is_same = [result is arguments[i] for result, i in zip(results, donated, strict=True)]
        if overlapping:
            assert not is_same[donated.index(first)]
        else:
            assert all(is_same)


def test_arrays_that_share_memory_are_not_overwritten():
    whole, other = np.arange(8, dtype=np.float32), np.arange(8, dtype=np.float32)
    arguments = [other, whole, whole[2:4], whole[4:], np.empty(0, np.float32)]
    shapes = tuple(Shape.array(DType.F32, each.shape) for each in arguments)
    arrays = to_arrays(CallSignature(shapes, shapes, True, tuple((i, i) for i in range(5))), arguments)
    assert [array is argument for array, argument in zip(arrays, arguments, strict=True)] == [
        True, False, False, False, True,
    ]  # fmt: skip


def test_unknown_layout_of_objects_is_noticed():
    assert layout_holds(ObjectLayout.with_header(object.__basicsize__))
    assert not layout_holds(ObjectLayout.with_header(object.__basicsize__ + 8))
