"""Convolutions in Winograd's tiles: what they are for, their error, and that nobody gets them unasked."""

from typing import Any

import numpy as np
import pytest

from xlalite.backends.base import CompileOptions, Executable, get_backend
from xlalite.hlo.evaluation.evaluator import evaluate
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.text import parse
from xlalite.hlo.verification.verifier import verify
from xlalite.passes.core.debug_options import DebugOptions
from xlalite.passes.preparation import convolution_winograd
from xlalite.passes.preparation.convolution_winograd import ConvolutionWinograd

FORMS = (
    ("2,9,11,5", "3,3,5,7", "2,9,11,7", "size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f"),
    ("2,5,9,11", "7,5,3,3", "2,7,9,12", "size=3x3 pad=1_1x1_2}, dim_labels=bf01_oi01->bf01"),
    ("2,19,5", "3,5,7", "2,16,7", "size=3 pad=-1_0}, dim_labels=b0f_0io->b0f"),
    (
        "2,5,6,7,5",
        "3,3,3,5,7",
        "2,5,4,8,7",
        "size=3x3x3 pad=1_1x0_0x2_1 rhs_reversal=0x1x1}, dim_labels=b012f_012io->b012f",
    ),
    ("9,2,11,5", "5,3,7,3", "7,9,2,11", "size=3x3 pad=1_1x1_1 rhs_reversal=1x1}, dim_labels=0b1f_i0o1->f0b1"),
    ("1,1,1,3", "3,3,3,2", "1,1,1,2", "size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f"),
)
DEEP = ("1,12,11,40", "3,3,40,16", "1,12,11,16", "size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f")
WIDE = ("8,28,28,128", "3,3,128,128", "8,28,28,128", "size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f")


def text_of(lhs: str, rhs: str, result: str, attributes: str, dtype: str = "f32") -> str:
    return f"""HloModule m
ENTRY e {{
  x = {dtype}[{lhs}] parameter(0)
  k = {dtype}[{rhs}] parameter(1)
  ROOT r = {dtype}[{result}] convolution(x, k), window={{{attributes} }}"""


def expanded(text: str, side: int) -> HloModule:
    module = parse(text)
    ConvolutionWinograd(side).run(module)
    verify(module)
    return module


def compiled(text: str, **options: Any) -> Executable:
    debug = DebugOptions(cpu_winograd=options.pop("side", 0))
    return get_backend("cpu").compile(parse(text), CompileOptions(use_cache=False, debug=debug, **options))


def numbers(module: HloModule, rng: np.random.Generator) -> list[np.ndarray]:
    return [rng.standard_normal(p.shape.dims).astype(p.shape.dtype.numpy) for p in module.entry_computation.parameters]


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small convolutions, too, whatever they save."""
    monkeypatch.setattr(convolution_winograd, "_direct_flops", lambda _: 1 << 62)


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("form", FORMS)
def test_tiles_of_two_are_exact_where_numbers_are_whole(form: tuple[str, ...], rng: np.random.Generator) -> None:
    text = text_of(*form)
    module = expanded(text, 2)
    assert all(one.opcode != "convolution" for one in module.instructions())
    arguments = [rng.integers(-9, 10, p.shape.dims).astype("f4") for p in module.entry_computation.parameters]
    expected = evaluate(parse(text), *arguments)
    np.testing.assert_array_equal(evaluate(module, *arguments), expected)
    np.testing.assert_array_equal(compiled(text, side=2)(*arguments), expected)


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("side", [2, 4])
@pytest.mark.parametrize(("form", "dtype"), [*((form, "f32") for form in (*FORMS, DEEP)), (DEEP, "f64")])
def test_error_stays_within_its_bound(
    form: tuple[str, ...], side: int, dtype: str, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every term is rounded once for each feature and a few times in every matrix."""
    text = text_of(*form, dtype=dtype)
    arguments = numbers(parse(text), rng)
    exact = evaluate(parse(text_of(*form, dtype="f64")), *(a.astype("f8") for a in arguments))
    if dtype == "f64":
        exact = exact_in_long_double(*arguments)
    found = np.asarray(compiled(text, side=side)(*arguments))
    (tile,) = (one for one in convolution_winograd._TILES if one.side == side)
    matrices = (tuple(tuple(map(abs, row)) for row in m) for m in (tile.of_input, tile.of_kernel, tile.of_result))
    monkeypatch.setattr(convolution_winograd, "_TILES", (convolution_winograd._Tile(side, *matrices),))
    size = np.asarray(evaluate(expanded(text, side), *map(np.abs, arguments)))
    rank, features = found.ndim - 2, found.shape[form[3].split("->")[1].index("f")]
    rounded = arguments[1].size // (3**rank * features) + 14 * rank
    bound = rounded * float(np.finfo(found.dtype).eps) / 2 * size
    assert np.all(np.abs(found - np.asarray(exact)) <= bound)


def exact_in_long_double(x: np.ndarray, k: np.ndarray) -> np.ndarray:
    _, n, m, _ = x.shape
    padded = np.pad(x.astype(np.longdouble), ((0, 0), (1, 1), (1, 1), (0, 0)))
    parts = (padded[:, i : i + n, j : j + m] @ k[i, j].astype(np.longdouble) for i in range(3) for j in range(3))
    return sum(parts, np.longdouble(0))  # type: ignore[return-value]


@pytest.mark.usefixtures("always")
def test_results_are_equal_on_any_number_of_threads(rng: np.random.Generator) -> None:
    arguments = numbers(parse(text_of(*DEEP)), rng)
    first, *others = (compiled(text_of(*DEEP), side=4, num_threads=n)(*arguments) for n in (1, 2, 5))
    for other in others:
        np.testing.assert_array_equal(first, other)


def test_nobody_gets_them_unasked() -> None:
    executable = compiled(text_of(*WIDE))
    assert "convolution-winograd" not in {one.decided_by for one in executable.decisions()}


@pytest.mark.parametrize(
    ("form", "why"),
    [
        (WIDE, "fewer multiplications"),
        (FORMS[0], "more is moved than multiplications are saved"),
    ],
)
def test_decisions_have_reasons(form: tuple[str, ...], why: str) -> None:
    found = [one for one in compiled(text_of(*form), side=4).decisions() if one.decided_by == "convolution-winograd"]
    assert [one.reason for one in found] == [why]
    assert {"tile", "flops", "flops_before", "elements_moved"} <= dict(found[0].numbers).keys()


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize(
    ("form", "dtype"),
    [
        (FORMS[0], "bf16"),
        (FORMS[0], "s32"),
        (FORMS[0], "c64"),
        (("2,9,11,5", "3,3,5,7", "2,5,6,7", "size=3x3 pad=1_1x1_1 stride=2x2}, dim_labels=b01f_01io->b01f"), "f32"),
        (("2,9,11,5", "3,3,5,7", "2,5,7,7", "size=3x3 rhs_dilate=2x2}, dim_labels=b01f_01io->b01f"), "f32"),
        (("2,9,11,5", "5,3,5,7", "2,5,9,7", "size=5x3}, dim_labels=b01f_01io->b01f"), "f32"),
        (
            ("2,9,11,6", "3,3,3,8", "2,7,9,8", "size=3x3}, dim_labels=b01f_01io->b01f, feature_group_count=2"),
            "f32",
        ),
        (("2,5", "5,7", "2,7", "}, dim_labels=bf_io->bf"), "f32"),
        (("0,9,11,5", "3,3,5,7", "0,7,9,7", "size=3x3}, dim_labels=b01f_01io->b01f"), "f32"),
    ],
)
def test_other_forms_stay_as_they_are(form: tuple[str, ...], dtype: str) -> None:
    text = text_of(*form, dtype=dtype).replace("window={}, ", "")
    assert not ConvolutionWinograd().run(parse(text))
