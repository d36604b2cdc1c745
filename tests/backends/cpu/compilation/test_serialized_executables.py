"""Executables as bytes: loaded they compute the same, without compiling; bytes that are none are refused."""

import dataclasses
import io
import json
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import xlalite as xl
from xlalite.backends.cpu.compilation import serialized
from xlalite.backends.cpu.native.cache_file import read_entry, write_entry
from xlalite.hlo import parse
from xlalite.hlo.errors import ExecutionError, SerializationError

MODULES = {
    "nested result": """HloModule nested
ENTRY e {
  p = (f32[2,3], s32[]) parameter(0)
  x = f32[2,3] get-tuple-element(p), index=0
  c = f32[2,3] constant({{1, 2, 3}, {4, 5, 6}})
  y = f32[2,3] add(x, c)
  i = s32[40,40] iota(), iota_dimension=1
  s = (s32[40,40], f32[2,3]) tuple(i, x)
  ROOT t = (f32[2,3], (s32[40,40], f32[2,3])) tuple(y, s)
}
""",
    "by the evaluator": """HloModule evaluated
ENTRY e {
  x = f64[5,5] parameter(0)
  ROOT r = f64[5,5] custom-call(x), custom_call_target="Sharding"
}
""",
    "no elements": """HloModule empty
ENTRY e {
  x = bf16[0,4] parameter(0)
  ROOT r = bf16[0,4] negate(x)
}
""",
    "sizes at run time": """HloModule sized
ENTRY e {
  x = f32[<=8] parameter(0)
  ROOT r = f32[<=8] exponential(x)
}
""",
}


def arguments(text: str) -> list[object]:
    rng = np.random.default_rng(0)

    def value(shape):
        if shape.is_tuple:
            return tuple(map(value, shape.elements))
        return np.asarray(rng.normal(size=shape.dims) * 9).astype(shape.dtype.numpy)

    return [*map(value, parse(text).entry_computation.program_shape.parameters)]


def flat(result: object) -> list[np.ndarray]:
    return [leaf for part in result for leaf in flat(part)] if isinstance(result, tuple) else [np.asarray(result)]


def rewritten(data: bytes, change) -> bytes:
    """The bytes with another record, and a digest that covers it."""
    code = read_entry(io.BytesIO(data), len(data), "executable")
    file = io.BytesIO()
    write_entry(file, "executable", change(code))
    return file.getvalue()


@pytest.fixture(scope="module")
def data() -> bytes:
    return xl.compile(parse(MODULES["nested result"])).serialize()


@pytest.mark.usefixtures("data")  # the first program of a process is compiled as one module
@pytest.mark.parametrize("use_cache", [True, False])
@pytest.mark.parametrize("text", MODULES.values(), ids=MODULES)
def test_loaded_executable_computes_the_same(text, use_cache):
    executable = xl.compile(parse(text), options=xl.CompileOptions(use_cache=use_cache))
    data = executable.serialize()
    loaded = xl.load_executable(data)
    assert (loaded.name, str(loaded.program_shape)) == (executable.name, str(executable.program_shape))
    assert loaded.code_size_bytes == executable.code_size_bytes
    given = arguments(text)
    for ours, theirs in zip(flat(loaded(*given)), flat(executable(*given)), strict=True):
        assert ours.dtype == theirs.dtype
        np.testing.assert_array_equal(ours, theirs)
    assert loaded.serialize() == data


def test_donated_arguments_are_overwritten_by_loaded_code_too():
    text = """HloModule m, input_output_alias={ {}: (0, {}, must-alias) }
ENTRY e {
  x = f32[100] parameter(0)
  ROOT y = f32[100] add(x, x)
}
"""
    executable = xl.compile(parse(text), options=xl.CompileOptions(donate_arguments=True))
    x = np.ones(100, np.float32)
    assert xl.load_executable(executable.serialize())(x) is x
    assert x[0] == 2


def test_devices_meet_in_loaded_code():
    text = """HloModule m, replica_count=2
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
ENTRY e {
  x = f32[3] parameter(0)
  ROOT y = f32[3] all-reduce(x), replica_groups={}, to_apply=add
}
"""
    loaded = xl.load_executable(xl.compile(parse(text)).serialize())
    for result in loaded.run_on_devices([[np.full(3, 1, np.float32)], [np.full(3, 2, np.float32)]]):
        np.testing.assert_array_equal(result, np.full(3, 3, np.float32))


def test_process_that_loads_runs_no_pass_and_no_llvm(tmp_path: Path, data):
    path = tmp_path / "nested.xlo"
    path.write_bytes(data)
    program = f"""
import sys
import numpy as np
import xlalite as xl
loaded = xl.load_executable({str(path)!r})
result = loaded((np.zeros((2, 3), np.float32), np.int32(0)))
assert result[0].tolist() == [[1, 2, 3], [4, 5, 6]], result
heavy = (
    "llvmlite.binding",
    "xlalite.backends.codegen.llvm.library",
    "xlalite.backends.cpu.compilation.compilation",
    "xlalite.passes.registry",
)
assert not (found := [name for name in heavy if name in sys.modules]), found
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_loaded_executable_says_that_it_knows_no_program(data):
    loaded = xl.load_executable(data)
    for ask in (
        loaded.memory_analysis,
        loaded.compile_report,
        loaded.cost_analysis,
        loaded.decisions,
        lambda: loaded.as_text("hlo"),
        loaded.report,
    ):
        with pytest.raises(ExecutionError, match="knows its code, not its program"):
            ask()


def test_interpreter_has_no_code():
    with pytest.raises(SerializationError, match="has no code to keep"):
        xl.compile(parse(MODULES["no elements"]), "interpreter").serialize()


def test_damaged_bytes_are_refused(data):
    rng = random.Random(0)
    damaged = [b"", b"xlalite", data[:40], data[:-1], data + b"x", b"X" + data[1:]]
    for _ in range(300):
        at = rng.randrange(len(data))
        damaged.append(data[:at] + bytes([data[at] ^ (1 << rng.randrange(8))]) + data[at + 1 :])
    for bytes_ in damaged:
        with pytest.raises(SerializationError, match="none that xlalite wrote: it is damaged"):
            xl.load_executable(bytes_)


@pytest.mark.parametrize("field", ["name", "parameters", "result", "num_threads", "replica_count", "num_partitions"])
@pytest.mark.parametrize(
    "value", [None, -1, 1 << 70, "x", "f32[2", [3], {"a": 1}, ["f32[2,3] f32[4]"], ["token[]", "q"]]
)
def test_strange_interfaces_are_refused(data, field, value):
    def change(code):
        interface = {**code.record["interface"], field: value}
        return dataclasses.replace(code, record={**code.record, "interface": interface})

    if (field, type(value)) in {("name", str), ("replica_count", int), ("num_partitions", int)} and value != -1:
        return
    with pytest.raises(SerializationError, match="loading an executable"):
        xl.load_executable(rewritten(data, change))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("arena_bytes", -1),
        ("arena_bytes", 1 << 60),
        ("donations", [[7, 0]]),
        ("donations", [[0, -9]]),
        ("donations", [[-2, 0]]),
        ("donations", [[0]]),
        ("evaluator_calls", {"f": 3}),
        ("has_loops", "x"),
    ],
)
def test_strange_records_are_refused(data, field, value):
    def change(code):
        return dataclasses.replace(code, record={**code.record, "code": {**code.record["code"], field: value}})

    with pytest.raises(SerializationError, match="loading an executable"):
        xl.load_executable(rewritten(data, change))


@pytest.mark.parametrize("record", [{}, {"version": 3}, {"version": None, "code": []}])
def test_other_versions_are_refused(data, record):
    with pytest.raises(SerializationError, match="another version"):
        xl.load_executable(rewritten(data, lambda code: dataclasses.replace(code, record=record)))


@pytest.mark.parametrize(
    "change",
    [
        lambda code: dataclasses.replace(code, image=b""),
        lambda code: dataclasses.replace(code, image=code.image[: len(code.image) // 2]),
        lambda code: dataclasses.replace(code, exports=()),
        lambda code: dataclasses.replace(code, exports=("nowhere",)),
        lambda code: dataclasses.replace(code, constants={}, image=b"!<arch>\n" + bytes(60)),
    ],
    ids=["no code", "half of the code", "no exports", "unknown export", "an empty archive"],
)
def test_strange_code_is_refused(data, change):
    with pytest.raises(SerializationError, match="loading an executable"):
        xl.load_executable(rewritten(data, change))


def with_machine(data: bytes, **fields: object) -> bytes:
    return rewritten(data, lambda code: dataclasses.replace(code, record={**code.record, **fields}))


def test_another_processor_runs_what_it_knows(data):
    known = xl.load_executable(with_machine(data, processor="another, with the same instructions"))
    assert known((np.zeros((2, 3), np.float32), np.int32(0)))[0][0, 0] == 1
    features = json.loads(json.dumps(serialized._features()))
    for fields, lacking in (
        ({"features": [*features, "avx1024"]}, "lacks avx1024"),
        ({"features": ["riscv64"]}, "lacks riscv64"),
        ({"system": "beos"}, "lacks beos"),
        ({"features": 3}, "a list of features"),
    ):
        with pytest.raises(SerializationError, match=lacking):
            xl.load_executable(with_machine(data, processor="another", **fields))
