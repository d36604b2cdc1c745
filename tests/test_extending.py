"""What programs add to the compiler: passes, rules, custom calls; and that code in the cache knows it."""

import ctypes
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from test_docs import ROOT, blocks_of

import xlalite as xl
from xlalite.backends.base import CompileOptions, get_backend
from xlalite.backends.codegen.arrays.index import Affine
from xlalite.backends.codegen.kernels import added_kernels
from xlalite.backends.codegen.kernels.kernel import Declined, Kernel, KernelRequest
from xlalite.backends.codegen.kernels.kernel_entry import open_kernel
from xlalite.backends.codegen.llvm import F32, Function, ModuleBuilder, constant
from xlalite.cli.main import main
from xlalite.hlo import parse
from xlalite.hlo.building.create import create
from xlalite.hlo.building.replacement import replace
from xlalite.hlo.errors import ExecutionError, PassError
from xlalite.hlo.surroundings import custom_calls
from xlalite.passes.core import extensions
from xlalite.passes.core.base import HloPass
from xlalite.passes.core.insertion import pipeline_text, with_extra_passes
from xlalite.passes.core.pipeline import FixPoint, Pipeline
from xlalite.passes.simplify import added_rules
from xlalite.passes.simplify.cse import CommonSubexpressionElimination
from xlalite.passes.simplify.dce import DeadCodeElimination

COSINE = "HloModule m\nENTRY e {\n  x = f32[8] parameter(0)\n  ROOT c = f32[8] cosine(x)\n}"
ARGUMENT = np.linspace(0, 1, 8, dtype=np.float32)


@dataclass(frozen=True)
class OtherFunction(HloPass):
    """cosine -> another function."""

    name: ClassVar[str] = "other-function"
    opcode: str = "sine"

    def run(self, module: xl.hlo.HloModule) -> bool:
        found = [one for one in module.instructions() if one.opcode == "cosine"]
        for one in found:
            replace(one, create(self.opcode, [one.operand(0)]))
        return bool(found)


@pytest.fixture(autouse=True)
def nothing_stays() -> Iterator[None]:
    """What a test registers is forgotten."""
    tables = (
        extensions._passes, extensions._stamps, added_rules._rules, added_kernels._plans,
        custom_calls.CUSTOM_CALLS, custom_calls.NATIVE_CALLS, custom_calls._REGISTERED,
    )  # fmt: skip
    kept = [table.copy() for table in tables]
    yield
    for table, before in zip(tables, kept, strict=True):
        table.clear()
        table.update(before)


def test_the_examples_of_the_page_run() -> None:
    code = "\n".join(block.text for block in blocks_of(ROOT / "docs" / "extending.md") if block.language == "python")
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr


# Passes.


def compiled(*extra: tuple[str, HloPass], pipeline: Pipeline | None = None) -> np.ndarray:
    options = CompileOptions(extra_passes=extra, pipeline=pipeline)
    return xl.compile(parse(COSINE), options=options)(ARGUMENT)


def test_an_extra_pass_runs_at_its_place_and_code_in_the_cache_knows_it_and_its_options() -> None:
    for _ in range(2):  # the second time out of the cache
        np.testing.assert_allclose(compiled(), np.cos(ARGUMENT), rtol=1e-6)
        np.testing.assert_allclose(compiled(("before:fusion", OtherFunction())), np.sin(ARGUMENT), rtol=1e-6)
        np.testing.assert_allclose(compiled(("after:dce", OtherFunction("tanh"))), np.tanh(ARGUMENT), rtol=1e-6)
        own = Pipeline("own", (OtherFunction("tanh"),))
        np.testing.assert_allclose(compiled(pipeline=own), np.tanh(ARGUMENT), rtol=1e-6)
        assert np.array_equal(compiled(pipeline=Pipeline("own", (OtherFunction("negate"),))), -ARGUMENT)


def test_stages_before_the_scheduler_have_extra_passes_too() -> None:
    options = CompileOptions(extra_passes=(("before:fusion", OtherFunction()), ("after:scheduler", OtherFunction())))
    assert "sine" in get_backend("cpu").compile_to("hlo", parse(COSINE), options).text


def test_places_in_pipelines() -> None:
    dce, cse = DeadCodeElimination(), CommonSubexpressionElimination()
    pipeline = Pipeline("p", (dce, FixPoint("f", (cse, dce)), cse))
    a, b = OtherFunction("a"), OtherFunction("b")
    assert pipeline_text(with_extra_passes(pipeline, [("before:dce", a), ("after:dce", b), ("after:f", a)])) == (
        "p:\n  other-function{opcode=a}\n  dce\n  f, until nothing changes:\n    cse\n    dce\n"
        "    other-function{opcode=b}\n  other-function{opcode=a}\n  cse\n"
    )
    both = with_extra_passes(pipeline, [("before:f", a), ("before:f", b)])
    assert both.stages[:4] == (dce, a, b, pipeline.stages[1])
    with pytest.raises(PassError, match="'before:dec' is no place in pipeline p; did you mean 'before:dce'"):
        with_extra_passes(pipeline, [("before:dec", a)])


def test_what_is_registered_has_a_name_and_needs_no_arguments() -> None:
    assert xl.register_pass(OtherFunction) is OtherFunction
    assert get_backend("cpu").passes["other-function"] is OtherFunction
    xl.register_pass(OtherFunction)  # again, as notebooks do

    for message, fields in {
        "is 'a b', expected a name such as": {"name": "a b"},
        "has the name 'dce' already": {"name": "dce"},
        "all options need defaults": {"name": "needs", "__init__": lambda self, needed: None},
    }.items():
        with pytest.raises(PassError, match=message):
            xl.register_pass(type("Made", (OtherFunction,), fields))
    with pytest.raises(PassError, match="expected a class that extends HloPass"):
        xl.register_pass(int)


def test_entry_points_bring_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    point = EntryPoint("other", f"{__name__}:OtherFunction", "xlalite.passes")
    monkeypatch.setattr(EntryPoint, "load", lambda self: OtherFunction)
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: [point] if group == point.group else [])
    monkeypatch.setattr(extensions, "_loaded", [])
    assert extensions.registered_passes() == {"other-function": OtherFunction}


def test_another_source_is_another_stamp(tmp_path: Path) -> None:
    def make(number: int) -> Callable[[], int]:
        return lambda: number

    assert extensions.source_stamp(make(1)) != extensions.source_stamp(make(2))
    assert extensions.source_stamp(make(1)) == extensions.source_stamp(make(1))
    versioned = type("OtherFunction", (OtherFunction,), {"version": 2, "__qualname__": "OtherFunction"})
    assert extensions.source_stamp(versioned) != extensions.source_stamp(OtherFunction)


def test_commands_load_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("XLALITE_FLAGS", raising=False)
    monkeypatch.setenv("XLALITE_LOAD", "")
    source, hlo = tmp_path / "mine.py", tmp_path / "f.hlo"
    own = Path(__file__).read_text()
    begin, end = own.index("@dataclass(frozen=True)\nclass OtherFunction"), own.index("@pytest.fixture")
    imports = own[: own.index("COSINE =")].replace("from test_docs import ROOT, blocks_of\n", "")
    source.write_text(f"{imports}\n@xl.register_pass\n{own[begin:end]}")
    hlo.write_text(COSINE)
    extra = "--xlalite_extra_passes=before:fusion:other-function"
    assert main(["opt", str(hlo), "--load", str(source), "--passes=other-function{opcode=tanh}"]) == 0
    assert "tanh(" in capsys.readouterr().out
    assert main(["opt", str(hlo), f"--load={source}", extra]) == 0
    assert "sine(" in capsys.readouterr().out
    assert main(["run", str(hlo), f"--load={source}", extra]) == 1
    assert main(["opt", "--print-pipeline", extra]) == 0
    assert "\n  other-function\n  fusion" in capsys.readouterr().out
    assert main(["opt", str(hlo), "--load=nothing.py"]) == 2
    assert "nothing.py: there is no such Python file" in capsys.readouterr().err
    monkeypatch.setenv("XLALITE_LOAD", "")
    assert main(["opt", str(hlo), "--xlalite_extra_passes=before:fusion:other-functoin"]) == 2
    assert "there is no pass 'other-functoin'; did you mean 'other-function'" in capsys.readouterr().err


# Rules.


def test_a_rule_of_somebody_takes_part_and_code_in_the_cache_knows_it() -> None:
    np.testing.assert_allclose(compiled(), np.cos(ARGUMENT), rtol=1e-6)

    @xl.register_rule("cosine")
    def to_sine(instruction: xl.hlo.HloInstruction) -> xl.hlo.HloInstruction:
        """cos(x) -> sin(x)."""
        return create("sine", instruction.operands)

    np.testing.assert_allclose(compiled(), np.sin(ARGUMENT), rtol=1e-6)
    decisions = xl.compile(parse(COSINE)).decisions()
    assert "algebraic-simplifier: to_sine: applied: cos(x) -> sin(x). (times=1)" in map(str, decisions)


def test_rules_that_cannot_be() -> None:
    with pytest.raises(PassError, match="there is no operation 'cosin'; did you mean 'cosine'"):
        xl.register_rule("cosin")
    known = next(iter(__import__("xlalite.passes.simplify.algebraic_simplifier", fromlist=["all_rules"]).all_rules()))
    with pytest.raises(PassError, match="the compiler has a rule"):
        xl.register_rule("add")(known.apply)


# Custom calls.


def calling(target: str, operands: str = "x", shape: str = "f32[8]", config: str = "") -> xl.hlo.HloModule:
    text = f'custom-call({operands}), custom_call_target="{target}", backend_config="{config}"'
    return parse(f"HloModule m\nENTRY e {{\n  x = f32[8] parameter(0)\n  ROOT c = {shape} {text}\n}}")


@pytest.mark.parametrize("backend", ["cpu", "interpreter"])
def test_python_functions_get_arrays_and_the_configuration(backend: str) -> None:
    @xl.register_custom_call("sum_and_scaled")
    def function(x: np.ndarray, config: str) -> tuple[float, np.ndarray]:
        assert not x.flags.writeable
        return float(x.sum()), x * np.float32(config)

    run = xl.compile(calling("sum_and_scaled", shape="(f64[], f32[8])", config="3"), backend)
    total, scaled = run(ARGUMENT)
    assert total == ARGUMENT.sum()
    assert np.array_equal(scaled, 3 * ARGUMENT)


def test_a_second_registration_takes_the_place_of_the_first() -> None:
    xl.register_custom_call("mine", lambda x: x + 1)
    run = xl.compile(calling("mine"))
    xl.register_custom_call("mine", lambda x: x + 2)
    assert np.array_equal(run(ARGUMENT), ARGUMENT + 2)
    with pytest.raises(ValueError, match="'TopK' belongs to the compiler"):
        xl.register_custom_call("TopK", lambda x: x)
    with pytest.raises(TypeError, match="expected a function or an address, found 'text'"):
        xl.register_custom_call("mine", "text")


Pointers = ctypes.POINTER(ctypes.c_void_p)


@ctypes.CFUNCTYPE(ctypes.c_int32, Pointers)
def reversed_or_failing(arrays: object) -> int:
    source, target = ((ctypes.c_float * 8).from_address(arrays[number]) for number in range(2))
    target[:] = source[::-1]
    return int(source[0] == 9)


@pytest.mark.parametrize("backend", ["cpu", "interpreter"])
@pytest.mark.parametrize("form", ["pointer", "address", "cfunc"])
def test_machine_code_is_called_as_it_is(backend: str, form: str) -> None:
    address = ctypes.cast(reversed_or_failing, ctypes.c_void_p).value
    cfunc = type("CFunc", (), {"address": address, "__call__": lambda self: None})()
    xl.register_custom_call("reversed", {"pointer": reversed_or_failing, "address": address, "cfunc": cfunc}[form])
    run = xl.compile(calling("reversed"), backend)
    assert np.array_equal(run(ARGUMENT), ARGUMENT[::-1])
    assert np.array_equal(run(ARGUMENT[::-1]), ARGUMENT)
    with pytest.raises(ExecutionError, match=r"it gave the code 1|custom-call target 'reversed' failed"):
        run(np.full(8, 9, np.float32))
    assert np.array_equal(run(ARGUMENT), ARGUMENT[::-1])


def test_machine_code_with_tuples() -> None:
    @ctypes.CFUNCTYPE(ctypes.c_int32, Pointers)
    def swapped(arrays: object) -> int:
        for source, target in ((0, 3), (1, 2)):
            ctypes.memmove(arrays[target], arrays[source], 32)
        return 0

    xl.register_custom_call("swapped", swapped)
    for backend in ("cpu", "interpreter"):
        text = """HloModule m
            ENTRY e { x = f32[8] parameter(0)
              n = f32[8] negate(x)
              t = (f32[8], f32[8]) tuple(x, n)
              ROOT c = (f32[8], f32[8]) custom-call(t), custom_call_target="swapped" }"""
        a, b = xl.compile(parse(text), backend)(ARGUMENT)
        assert np.array_equal(a, -ARGUMENT)
        assert np.array_equal(b, ARGUMENT)


# Kernels.


@dataclass(frozen=True)
class Zeros(Kernel):
    """What nobody asked for, so that it is seen who computed something."""

    @property
    def extent(self) -> int:
        return 8

    def emit(self, module: ModuleBuilder, name: str) -> Function:
        entry = open_kernel(module, name, self.request)
        with entry.fb.loop(entry.begin, entry.end) as place:
            entry.outputs[0].write(entry.emitter(1).math, (Affine(place),), constant(F32, 0.0))
        entry.close()
        return entry.function


def test_an_added_kernel_is_asked_first_the_latest_before_all() -> None:
    asked: list[str] = []

    @xl.register_kernel("cosine", "sine")
    def zeros(request: KernelRequest) -> Kernel | Declined:
        asked.append("zeros")
        return Zeros(request)

    @xl.register_kernel("cosine")
    def declining(request: KernelRequest) -> Kernel | Declined:
        asked.append("declining")
        return Declined("of no mind to")

    executable = xl.compile(parse(COSINE))
    np.testing.assert_array_equal(executable(ARGUMENT), np.zeros(8))
    assert asked == ["declining", "zeros"]
    assert "zeros: not declining: of no mind to" in "\n".join(map(str, executable.decisions()))
    sine = xl.compile(parse(COSINE.replace("cosine", "sine")))
    np.testing.assert_array_equal(sine(ARGUMENT), np.zeros(8))

    declining.__name__ = "zeros"
    xl.register_kernel("sine")(declining)  # of the same name, as in notebooks
    np.testing.assert_allclose(xl.compile(parse(COSINE))(ARGUMENT), np.cos(ARGUMENT), rtol=1e-6)


def test_a_kernel_is_for_operations_that_there_are() -> None:
    with pytest.raises(PassError, match="no operation 'cosin'; did you mean 'cosine'"):
        xl.register_kernel("cosin")
    with pytest.raises(PassError, match="expected the names of operations, found none"):
        xl.register_kernel()
