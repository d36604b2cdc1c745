"""StableHLO as MLIR bytecode: versions, containers, meshes, damage. The other files read their programs so, too."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mlir_bytecode import artifact_of, bytecode_of, unpacked

from xlalite.hlo.errors import BinaryParseError, ParseError
from xlalite.hlo.evaluation.evaluator import evaluate
from xlalite.hlo.ir.fingerprint import structurally_equal
from xlalite.hlo.ir.instruction import Metadata
from xlalite.hlo.loading import load
from xlalite.hlo.stablehlo.bytecode.container import Container
from xlalite.hlo.stablehlo.bytecode.entries import LocationEntries
from xlalite.hlo.text import parse

jax = pytest.importorskip("jax")
jnp = jax.numpy
lax = jax.lax
pytestmark = pytest.mark.oracle

X = np.arange(8, dtype=np.float32).reshape(2, 4)
Y = np.eye(4, dtype=np.float32) * 3


def everything(x: Any, y: Any) -> Any:
    """Regions in regions, attributes of all kinds, custom calls, several functions."""

    def body(carry: Any, row: Any) -> Any:
        return jnp.where(row.sum() > 1, carry @ y, carry), carry.max()

    carry, maxima = lax.scan(body, x, jnp.arange(6.0).reshape(3, 2))
    image = lax.conv_general_dilated(x[None, None], jnp.ones((1, 1, 2, 2)), (1, 1), "SAME")
    chosen = lax.cond(x[0, 0] > 0, jnp.sin, lambda v: v * 2, x)
    factor = jnp.linalg.cholesky(y @ y.T + jnp.eye(4))
    bits = lax.bitcast_convert_type(lax.rng_bit_generator(jnp.zeros(4, jnp.uint32), (3,))[1], jnp.int32)
    return carry, maxima, jnp.sort(x, 1), x[jnp.array([1, 0])], image, chosen, factor, jnp.fft.rfft(x), bits


@pytest.fixture(scope="module")
def program() -> Any:
    return jax.jit(everything).lower(X, Y).compiler_ir("stablehlo")


@pytest.mark.parametrize("version", ["1.0.0", "1.5.0", "1.9.0", "1.13.0", "1.17.0"])
def test_artifacts_for_other_versions_mean_the_same(program: Any, version: str) -> None:
    artifact = artifact_of(program, version)
    module = parse(artifact)
    assert structurally_equal(module, parse(unpacked(artifact)))
    assert structurally_equal(module, parse(artifact_of(program)))


def test_exported_files_run(tmp_path: Path) -> None:
    pytest.importorskip("flatbuffers")
    path = tmp_path / "sines.bin"
    path.write_bytes(jax.export.export(jax.jit(lambda x: jnp.sin(x) + 1))(X).serialize())
    np.testing.assert_allclose(evaluate(load(path), X), np.sin(X) + 1, rtol=1e-6)


def test_locations_say_what_text_says() -> None:
    lowered = jax.jit(everything).lower(X, Y)
    text = parse(lowered.as_text(debug_info=True))
    binary = parse(bytecode_of(lowered.compiler_ir("stablehlo")))
    for one, other in zip(text.instructions(), binary.instructions(), strict=True):
        # The short form of a reduction in text has no places inside.
        assert one.opcode == other.opcode
        assert one.metadata in (other.metadata, Metadata())
    assert any(instruction.metadata.source_file for instruction in binary.instructions())
    parameter = binary.entry_computation.parameters[0]
    assert parameter.name.startswith("arg0")


@pytest.mark.parametrize("shardings", [False, True])
def test_meshes_and_shardings_of_one_device_are_read_over(shardings: bool) -> None:
    mesh = jax.sharding.Mesh(np.array(jax.devices("cpu")[:1]), "x")
    placed = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("x"))
    function = jax.jit(lambda x: lax.with_sharding_constraint(x * 2, placed), in_shardings=placed)
    module = parse(artifact_of(function.lower(X).compiler_ir("stablehlo"), shardings=shardings))
    np.testing.assert_array_equal(evaluate(module, X), X * 2)


SHARDINGS = """
module @m {
  sdy.mesh @mesh = <["x"=2, "yy"=6, "z"=4]>
  sdy.mesh @one = <[], device_ids=[5]>
  sdy.mesh @ordered = <["x"=2, "yy"=2], device_ids=[3, 2, 1, 0]>
  func.func public @main(
      %a: tensor<8x12xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", "yy"}, {"z"}]>},
      %b: tensor<8x12xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", ?}, {?}]>},
      %c: tensor<8x12xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"z", ?}p3], replicated={"x"}, unreduced={"yy"}>},
      %d: tensor<8x12xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"yy":(2)3}]>},
      %e: tensor<f32> {sdy.sharding = #sdy.sharding<mesh<["q"=3]>, []>}) -> tensor<8x12xf32> {
    %0 = stablehlo.add %a, %b {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {}]>]>} : tensor<8x12xf32>
    sdy.sharding_group %0 group_id=3 : tensor<8x12xf32>
    %1 = sdy.manual_computation(%0) in_shardings=[<@mesh, [{"x"}, {}]>] out_shardings=[<@mesh, [{"x"}, {}]>]
        manual_axes={"x", "yy"} (%part: tensor<4x12xf32>) {
      sdy.return %part : tensor<4x12xf32>
    } : (tensor<8x12xf32>) -> tensor<8x12xf32>
    return %1 : tensor<8x12xf32>
  }
}"""


def test_shardings_are_spelled_as_in_text() -> None:
    from jax._src.interpreters.mlir import make_ir_context
    from jaxlib.mlir import ir

    with make_ir_context(), ir.Location.unknown():
        binary = parse(bytecode_of(ir.Module.parse(SHARDINGS)))
    text = parse(SHARDINGS)
    assert binary.config.frontend_attributes == text.config.frontend_attributes != ()
    for one, other in zip(binary.instructions(), text.instructions(), strict=True):
        assert (one.opcode, one.frontend_attributes) == (other.opcode, other.frontend_attributes)


STARTED = """
func.func @main(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "stablehlo.async_start"(%a) ({
    ^bb0(%c: tensor<4xf32>):
      %1 = "stablehlo.collective_permute"(%c) {source_target_pairs = dense<[[0, 0]]> : tensor<1x2xi64>}
        : (tensor<4xf32>) -> tensor<4xf32>
      stablehlo.return %1 : tensor<4xf32>
    }) : (tensor<4xf32>) -> !stablehlo.future<tensor<4xf32>>
  %2 = stablehlo.add %a, %b : tensor<4xf32>
  %3 = "stablehlo.async_done"(%0) : (!stablehlo.future<tensor<4xf32>>) -> tensor<4xf32>
  %4 = stablehlo.multiply %2, %3 : tensor<4xf32>
  return %4 : tensor<4xf32>
}"""


@pytest.mark.parametrize("form", [artifact_of, bytecode_of])
def test_what_is_started_is_done(form: Any) -> None:
    from jax._src.interpreters.mlir import make_ir_context
    from jaxlib.mlir import ir

    module, a, b = parse(STARTED), *np.arange(8, dtype=np.float32).reshape(2, 4)
    np.testing.assert_array_equal(evaluate(module, a, b), (a + b) * a)
    with make_ir_context(), ir.Location.unknown():
        assert structurally_equal(parse(form(ir.Module.parse(STARTED))), module)


def test_only_what_is_started_can_be_done() -> None:
    text = STARTED.replace('async_done"(%0) : (!stablehlo.future<tensor<4xf32>>)', 'async_done"(%a) : (tensor<4xf32>)')
    with pytest.raises(ParseError, match="expected what async_start gives"):
        parse(text)


def test_large_constants_are_whole() -> None:
    values = np.random.default_rng(0).normal(size=(300, 70)).astype(np.float32)
    module = parse(artifact_of(jax.jit(lambda: jnp.asarray(values)).lower().compiler_ir("stablehlo")))
    np.testing.assert_array_equal(evaluate(module), values)


@pytest.mark.parametrize("dtype", ["float32", "int8", "bool", "complex64", "int4"])
@pytest.mark.parametrize("form", [artifact_of, bytecode_of])
def test_one_number_stands_for_the_elements_of_an_empty_array(dtype: str, form: Any) -> None:
    module = parse(form(jax.jit(lambda: jnp.zeros((4, 0), dtype)).lower().compiler_ir("stablehlo")))
    found = evaluate(module)
    assert (found.shape, found.dtype.name) == ((4, 0), dtype)


def test_sizes_that_are_not_known_are_refused() -> None:
    shapes = jax.export.symbolic_args_specs(X, "n, 4")
    exported = jax.export.export(jax.jit(lambda x: x * 2))(shapes)
    with pytest.raises(BinaryParseError, match=r"byte \d+: .*only static shapes can be read"):
        parse(bytes(exported.mlir_module_serialized))


def test_newer_formats_are_refused(program: Any) -> None:
    data = bytearray(artifact_of(program))
    data[4] = 2 * 9 + 1
    with pytest.raises(BinaryParseError, match="version 9 of MLIR bytecode cannot be read, only those up to 6"):
        parse(bytes(data))


def test_bytes_that_end_early_are_refused(program: Any) -> None:
    data = artifact_of(program)
    for size in range(4, len(data), 211):
        with pytest.raises(ParseError):
            parse(data[:size])


def test_locations_that_are_not_there_say_nothing() -> None:
    assert LocationEntries(Container(b"", 6)).get("5") is None


def damage(data: bytes, seed: int, count: int) -> None:
    """Reads files with bytes that were changed, taken out or put in."""
    choose = random.Random(seed)
    for _ in range(count):
        found = bytearray(data)
        for _ in range(choose.choice((1, 1, 2, 8))):
            place = choose.randrange(4, len(found))
            match choose.randrange(4):
                case 0:
                    found[place] = choose.randrange(256)
                case 1:
                    found[place] ^= 1 << choose.randrange(8)
                case 2:
                    del found[place : place + choose.randrange(1, 9)]
                case _:
                    found[place:place] = choose.randbytes(choose.randrange(1, 9))
        try:
            parse(bytes(found))
        except ParseError:
            continue


@pytest.mark.parametrize("form", [artifact_of, bytecode_of])
def test_damaged_files_give_errors(program: Any, form: Any) -> None:
    damage(form(program), 1, 400)


@pytest.mark.slow
@pytest.mark.parametrize("form", [artifact_of, bytecode_of])
def test_many_damaged_files_give_errors(program: Any, form: Any) -> None:
    damage(form(program), 2, 50_000)
