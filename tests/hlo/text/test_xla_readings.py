"""What XLA's parser reads beside the usual spellings is read, written as XLA reads it, and run."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from nested_arrays import leaves

from xlalite.backends.base import CompileOptions, get_backend
from xlalite.hlo import parse_proto
from xlalite.hlo.errors import ParseError, VerificationError
from xlalite.hlo.ir.fingerprint import structurally_equal
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.text import parse
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.literal import Value
from xlalite.hlo.types.shape import Shape
from xlalite.hlo.verification.verifier import verify

ADD = "s { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT r = f32[] add(a, b) }\n"
TUPLE_ADD = "s { a = f32[] parameter(0)\n b = f32[] parameter(1)\n c = add(a, b)\n ROOT r = (f32[]) tuple(c) }\n"
LESS = "l { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT r = pred[] compare(a, b), direction=LT }\n"
NEGATE = "m { a = f32[] parameter(0)\n ROOT r = f32[] negate(a) }\n"
SCATTER = "update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=0"


def entry(body: str, before: str = "", header: str = "HloModule t\n") -> str:
    return f"{header}{before}ENTRY e {{\n{body}\n}}\n"


def product(lhs: str, rhs: str, result: str) -> str:
    return entry(
        f"a = {lhs}[2,3] parameter(0)\n b = {rhs}[3,2] parameter(1)\n"
        f"ROOT d = {result}dot(a, b), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}"
    )


def convolution(lhs: str, rhs: str, result: str) -> str:
    return entry(
        f"a = {lhs}[1,5,5,3] parameter(0)\n b = {rhs}[2,2,3,2] parameter(1)\n"
        f"ROOT d = {result}convolution(a, b), window={{size=2x2}}, dim_labels=b01f_01io->b01f"
    )


def reduction(line: str, before: str) -> str:
    return entry(f"a = f32[3] parameter(0)\n z = f32[] constant(0)\n ROOT r = {line}, to_apply=s", before)


def pair(line: str, lhs: str = "f16", rhs: str = "f32") -> str:
    return entry(f"a = {lhs}[4] parameter(0)\n b = {rhs}[4] parameter(1)\n ROOT d = {line}")


# XLA's CPU compiler runs these.
RUN = {
    "first element": entry("ROOT c = f32[2,2] constant(1)"),
    "wrapped": entry("ROOT c = u64[] constant(-1)"),
    "dot s8 f32": product("s8", "f32", "f32[2,2] "),
    "dot s8 f32 inferred": product("s8", "f32", ""),
    "dot pred f32": product("pred", "f32", "f32[2,2] "),
    "dot pred s32": product("pred", "s32", "s32[2,2] "),
    "dot s8 bf16": product("s8", "bf16", "f32[2,2] "),
    "dot c64 f32": product("c64", "f32", "c64[2,2] "),
    "dot s8 s8": product("s8", "s8", "s8[2,2] "),
    "convolution s8 bf16": convolution("s8", "bf16", "bf16[1,4,4,2] "),
    "convolution f32 pred": convolution("f32", "pred", "f32[1,4,4,2] "),
    "convolution s4 f32": convolution("s4", "f32", "f32[1,4,4,2] "),
    "colon": entry("ROOT a = f32[2] parameter(0)", header="HloModule t:\n\n"),
    "map": entry("a = f32[2,3] parameter(0)\n ROOT r = f32[2,3] map(a), to_apply=m", NEGATE),
    "map over none": entry("a = f32[2,3] parameter(0)\n ROOT r = f32[2,3] map(a), dimensions={}, to_apply=m", NEGATE),
    "map over some": entry("a = f32[2,3] parameter(0)\n ROOT r = f32[2,3] map(a), dimensions={1}, to_apply=m", NEGATE),
    "alias of bytes": entry(
        "a = f32[2,3] parameter(0)\n b = f32[6] reshape(a)\n ROOT r = s32[6] bitcast-convert(b)",
        header="HloModule t, input_output_alias={ {}: (0, {}, may-alias) }\n",
    ),
    "precision": entry(
        "a = f32[2,2] parameter(0)\n ROOT d = f32[2,2] dot(a, a), lhs_contracting_dims={1}, "
        "rhs_contracting_dims={0}, operand_precision={HIGH,Highest}"
    ),
    "nested": entry("add = f32[] parameter(0)\n ROOT r = f32[] add(add, add(add, multiply(add, add)))"),
    "nested with shapes": entry("add = f32[] parameter(0)\n ROOT r = f32[] add(f32[] add(add, add), f32[] add)"),
    "reduce to a tuple": reduction("(f32[]) reduce(a, z), dimensions={0}", TUPLE_ADD),
    "reduce with a tuple": reduction("f32[] reduce(a, z), dimensions={0}", TUPLE_ADD),
    "reduce that is a tuple": reduction("(f32[]) reduce(a, z), dimensions={0}", ADD),
    "reduce-window to a tuple": reduction("(f32[2]) reduce-window(a, z), window={size=2}", TUPLE_ADD),
    "scatter to a tuple": entry(
        "a = f32[3] parameter(0)\n i = s32[1] parameter(1)\n u = f32[] parameter(2)\n"
        f"ROOT r = (f32[3]) scatter(a, i, u), to_apply=s, {SCATTER}",
        TUPLE_ADD,
    ),
    "all-reduce to a tuple": entry(
        "a = f32[3] parameter(0)\n ROOT r = (f32[3]) all-reduce(a), to_apply=s, replica_groups={}", ADD
    ),
    "sort to a tuple": entry("a = f32[3] parameter(0)\n ROOT r = (f32[3]) sort(a), dimensions={0}, to_apply=l", LESS),
    "window of a scalar": entry(
        "a = f32[] parameter(0)\n z = f32[] constant(0)\n ROOT r = f32[] reduce-window(a, z), to_apply=s", ADD
    ),
    "channel 0": entry(
        "a = f32[2] parameter(0)\n ROOT d = f32[2] all-gather(a), channel_id=0, replica_groups={{0}}, dimensions={0}"
    ),
}
# XLA's parser reads these; its compiler has other limits, undefined elements, or dies.
READ = {
    "minimum f16 f32": pair("minimum(a, b)"),
    "add f32 bf16": pair("f32[4] add(a, b)", "f32", "bf16"),
    "compare f16 f32": pair("pred[4] compare(a, b), direction=LT"),
    "atan2 f32 f64": pair("f64[4] atan2(a, b)", "f32", "f64"),
    "dot s4 bf16": product("s4", "bf16", "bf16[2,2] "),
    "select-and-scatter of scalars": entry(
        "a = f32[] parameter(0)\n z = f32[] constant(0)\n"
        "ROOT r = f32[] select-and-scatter(a, a, z), select=l, scatter=s",
        ADD + LESS,
    ),
    "fft of the beginning": entry("a = c64[8] parameter(0)\n ROOT r = c64[8] fft(a), fft_type=FFT, fft_length={4}"),
    "fft with zeros": entry("a = c64[8] parameter(0)\n ROOT r = c64[8] fft(a), fft_type=IFFT, fft_length={32}"),
    "fft across": entry("a = c64[4,8] parameter(0)\n ROOT r = c64[4,8] fft(a), fft_type=FFT, fft_length={8,4}"),
}
# ... and these, which have no one value here.
WRITTEN = {
    "rng with its shape": entry(
        "a = f32[] constant(0)\n b = f32[] constant(1)\n s = s32[2] constant({2,3})\n"
        "ROOT r = f32[2,3] rng(a, b, s), distribution=rng_uniform"
    ),
    "send on channel 0": entry(
        "a = f32[2] parameter(0)\n t = token[] after-all()\n"
        "d = (f32[2], u32[], token[]) send(a, t), channel_id=0\n ROOT f = token[] send-done(d), channel_id=0"
    ),
}


def argument(shape: Shape, rng: np.random.Generator) -> Value:
    if shape.dtype is DType.PRED:
        return rng.random(shape.dims) < 0.5
    if shape.dtype.is_integral:
        return np.asarray(rng.integers(0, 3, shape.dims)).astype(shape.dtype.numpy)
    return np.asarray(rng.integers(-8, 8, shape.dims) / 4).astype(shape.dtype.numpy)


def check_equal(one: object, other: object) -> None:
    for left, right in zip(leaves(one), leaves(other), strict=True):
        assert (left.dtype, left.shape) == (right.dtype, right.shape)
        wide = np.complex128 if left.dtype.kind == "c" else np.float64
        np.testing.assert_allclose(left.astype(wide), right.astype(wide), rtol=1e-5, atol=1e-5)


def run(module: HloModule, arguments: list[Value], backend: str) -> object:
    return get_backend(backend).compile(module, CompileOptions(use_cache=False))(*arguments)


@pytest.mark.parametrize("name", [*RUN, *READ, *WRITTEN])
def test_it_is_read_and_written(name: str) -> None:
    module = parse((RUN | READ | WRITTEN)[name])
    verify(module)
    for preset in ("default", "short_parsable", "lossless"):
        again = parse(module.to_string(preset))
        assert structurally_equal(again, module)
        assert again.to_string(preset) == module.to_string(preset)
    assert structurally_equal(parse_proto(module.to_proto()), module)


@pytest.mark.parametrize("name", [*RUN, *READ])
def test_both_backends_give_the_same(name: str, rng: np.random.Generator) -> None:
    module = parse((RUN | READ)[name])
    arguments = [argument(parameter.shape, rng) for parameter in module.entry_computation.parameters]
    check_equal(run(module, arguments, "cpu"), run(module, arguments, "interpreter"))


@pytest.mark.oracle
@pytest.mark.parametrize("name", [*RUN, *READ, *WRITTEN])
def test_xla_reads_what_is_written(name: str) -> None:
    hlo = pytest.importorskip("jaxlib._hlo")
    text = (RUN | READ | WRITTEN)[name]
    theirs = hlo.hlo_module_from_text(text).to_string()
    for preset in ("default", "short_parsable", "lossless"):
        again = hlo.hlo_module_from_text(parse(text).to_string(preset)).to_string()
        assert again.split("ENTRY")[1].count("channel_id=0") == theirs.split("ENTRY")[1].count("channel_id=0")
    hlo.HloModule.from_serialized_hlo_module_proto(parse(text).to_proto())


@pytest.mark.oracle
@pytest.mark.parametrize("name", RUN)
def test_xla_gives_the_same(name: str, rng: np.random.Generator, run_with_xla: Callable[..., list[np.ndarray]]) -> None:
    module = parse(RUN[name])
    arguments = [argument(parameter.shape, rng) for parameter in module.entry_computation.parameters]
    check_equal(tuple(leaves(run(module, arguments, "interpreter"))), tuple(run_with_xla(RUN[name], *arguments)))


def test_an_fft_of_another_length_takes_the_beginning_or_goes_on_with_zeros() -> None:
    signal = np.arange(1, 9).astype(np.complex64)
    found = run(parse(READ["fft of the beginning"]), [signal], "cpu")
    check_equal(found, np.concatenate([np.fft.fft(signal[:4]), np.zeros(4)]).astype(np.complex64))
    check_equal(run(parse(READ["fft with zeros"]), [signal], "cpu"), np.fft.ifft(signal, 32)[:8].astype(np.complex64))


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        (pair("f16[4] minimum(a, b)"), ParseError, "found result shape f16[4], expected f32[4]"),
        (pair("add(a, b)", "f16", "bf16"), ParseError, "element types f16 and bf16 differ"),
        (pair("add(a, b)", "s8", "s32"), ParseError, "element types s8 and s32 differ"),
        (product("f16", "bf16", ""), ParseError, "neither f16 nor bf16 is the wider type"),
        (product("f32", "f32", "s32[2,2] "), ParseError, "cannot have element type s32"),
        (
            reduction("(f32[], f32[]) reduce(a, z), dimensions={0}", ADD),
            ParseError,
            "found result shape (f32[], f32[])",
        ),
        (RUN["alias of bytes"].replace("may", "must"), VerificationError, "found s32[6] for a parameter of f32[2,3]"),
        (RUN["map"].replace("to_apply=m", "dimensions={2}, to_apply=m"), ParseError, "is not a dimension of rank 2"),
        (entry("a = f32[8] parameter(0)\n ROOT r = fft(a), fft_type=RFFT, fft_length={4}"), ParseError, "RFFT with"),
        (
            "HloModule t: is_scheduled=true\nENTRY e { ROOT a = f32[] parameter(0) }",
            ParseError,
            "found 'is_scheduled='",
        ),
    ],
)
def test_what_has_no_meaning_is_refused(text: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error) as caught:
        verify(parse(text))
    assert message in str(caught.value)
