"""Code of elementary functions stands in place in so many places of a module; the others call it."""

import numpy as np

import xlalite as xl
from xlalite.backends.base import CompileOptions, get_backend
from xlalite.backends.codegen.math.functions import MATH_FUNCTIONS
from xlalite.hlo.evaluation.evaluator import evaluate
from xlalite.hlo.text import parse


def columns(count: int, opcode: str) -> str:
    """As many functions of as many parameters of different sizes, so that no two kernels are equal."""
    lines = [f"p{i} = f32[{i + 1}] parameter({i})\n r{i} = f32[{i + 1}] {opcode}(p{i})" for i in range(count)]
    shapes = ", ".join(f"f32[{i + 1}]" for i in range(count))
    results = ", ".join(f"r{i}" for i in range(count))
    return "HloModule m\nENTRY e {\n" + "\n".join(lines) + f"\nROOT t = ({shapes}) tuple({results})\n}}"


def calls(count: int, opcode: str) -> int:
    text = get_backend("cpu").compile_to("llvm-before-optimizations", parse(columns(count, opcode)), CompileOptions())
    return text.text.count(f"@xlalite.{opcode}.") - text.text.count(f"define internal <16 x float> @xlalite.{opcode}.")


def test_few_places_hold_the_code_and_many_call_it() -> None:
    few, many = calls(4, "tanh"), calls(80, "tanh")
    assert few == 0
    assert many > 0
    assert MATH_FUNCTIONS["sqrt"].places is None
    assert calls(80, "sqrt") == 0


def test_called_code_gives_the_same_bits() -> None:
    module = parse(columns(80, "tanh"))
    rng = np.random.default_rng(0)
    arguments = [rng.standard_normal(i + 1).astype(np.float32) for i in range(80)]
    found = xl.compile(module, options=CompileOptions(use_cache=False))(*arguments)
    alone = parse("HloModule m\nENTRY e {\n p = f32[80] parameter(0)\n ROOT r = f32[80] tanh(p)\n}")
    expected = xl.compile(alone)(arguments[-1])
    np.testing.assert_array_equal(np.asarray(found[-1]), np.asarray(expected))
    np.testing.assert_allclose(found[0], evaluate(module, *arguments)[0], rtol=1e-6)
