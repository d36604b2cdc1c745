"""Reading models and calling them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from interop.onnx.onnx_models import function, graph, model, node, tensor

import xlalite
from xlalite.hlo.errors import ArgumentError, LoweringError, ParseError
from xlalite.hlo.proto.message import ProtoMessage
from xlalite.hlo.proto.wire import encode
from xlalite.hlo.types.dtype import DType
from xlalite.interop.onnx.known_values import UnknownValueError

F32, S64, PRED = DType.F32, DType.S64, DType.PRED
VECTOR = np.arange(6, dtype=np.float32)


def test_inputs_go_by_position_and_by_name() -> None:
    found = xlalite.onnx.load(model([node("Sub", "a b", "c")], {"a": (F32, [6]), "b": (F32, [6])}, "c"))
    for (difference,) in (found(VECTOR, 2 * VECTOR), found(VECTOR, b=2 * VECTOR), found(b=2 * VECTOR, a=VECTOR)):
        np.testing.assert_array_equal(difference, -VECTOR)
    assert list(found.run({"a": VECTOR, "b": VECTOR})) == ["c"]


@pytest.mark.parametrize(
    ("arguments", "named", "message"),
    [
        ((), {}, "input 'a' is missing"),
        ((VECTOR, VECTOR), {}, "takes 1 inputs, found 2"),
        ((VECTOR,), {"a": VECTOR}, "by position and by name"),
        ((VECTOR,), {"z": VECTOR}, "no input 'z'"),
        ((VECTOR.astype(np.float64),), {}, "must be of type float32, found float64"),
        ((VECTOR[:2],), {}, r"must have sizes \[6\], found \[2\]"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(arguments: tuple, named: dict, message: str) -> None:
    found = xlalite.onnx.load(model([node("Neg", "a", "c")], {"a": (F32, [6])}, "c"))
    with pytest.raises(ArgumentError, match=message):
        found(*arguments, **named)


def test_named_dimensions_are_compiled_for_each_size() -> None:
    nodes = [node("Shape", "x", "s"), node("ReduceSum", "x", "y", keepdims=0)]
    found = xlalite.onnx.load(model(nodes, {"x": (F32, ["n", 3])}, "s y"))
    for size in (1, 4):
        sizes, total = found(np.ones((size, 3), np.float32))
        assert sizes.tolist() == [size, 3]
        assert total == 3 * size
    module = found.module({"n": 5})
    assert [shape.dims for shape in module.entry_computation.program_shape.parameters] == [(5, 3)]


def test_shapes_that_follow_from_values_are_compiled_by_value() -> None:
    found = xlalite.onnx.load(model([node("Reshape", "x s", "y")], {"x": (F32, [6]), "s": (S64, [2])}, "y"))
    for dims in ((2, 3), (3, 2), (2, 3)):
        (reshaped,) = found(VECTOR, np.array(dims))
        np.testing.assert_array_equal(reshaped, VECTOR.reshape(dims))
    with pytest.raises(UnknownValueError):
        found.module()


def test_shapes_are_followed_through_constants() -> None:
    nodes = [
        node("Shape", "x", "s"), node("Gather", "s zero", "n"), node("Unsqueeze", "n axes", "u"),
        node("Concat", "u minus", "d", axis=0), node("Reshape", "x d", "y"),
    ]  # fmt: skip
    constants = {"zero": np.array(0), "axes": np.array([0]), "minus": np.array([-1])}
    found = xlalite.onnx.load(model(nodes, {"x": (F32, ["n", 2, 3])}, "y", constants))
    (flat,) = found(np.zeros((4, 2, 3), np.float32))
    assert flat.shape == (4, 6)


def test_a_branch_is_taken_when_the_condition_is_known_and_compiled_when_not() -> None:
    nothing: dict = {}
    branches = {
        "then_branch": graph([node("Add", "x x", "t")], nothing, "t"),
        "else_branch": graph([node("Neg", "x", "e")], nothing, "e"),
    }
    found = xlalite.onnx.load(model([node("If", "c", "y", **branches)], {"c": (PRED, []), "x": (F32, [6])}, "y"))
    np.testing.assert_array_equal(found(np.array(True), VECTOR)[0], 2 * VECTOR)
    np.testing.assert_array_equal(found(np.array(False), VECTOR)[0], -VECTOR)
    assert "conditional" in found.module().to_string()
    known = model([node("If", "c", "y", **branches)], {"x": (F32, [6])}, "y", {"c": np.array(False)})
    assert "conditional" not in xlalite.onnx.load(known).module().to_string()


def loop_body(nodes: list[ProtoMessage], outputs: str) -> ProtoMessage:
    return graph(nodes, {"i": (S64, []), "c": (PRED, []), "s": (F32, [6])}, outputs)


def test_a_loop_keeps_state_and_gathers_rows() -> None:
    body = loop_body([node("Identity", "c", "d"), node("Add", "s x", "t"), node("Neg", "t", "r")], "d t r")
    nodes = [node("Loop", "m - x", "y rows", body=body)]
    found = xlalite.onnx.load(model(nodes, {"x": (F32, [6])}, "y rows", {"m": np.array(3)}))
    state, rows = found(VECTOR)
    np.testing.assert_array_equal(state, 4 * VECTOR)
    np.testing.assert_array_equal(rows, -VECTOR * np.array([[2], [3], [4]], np.float32))
    assert "while" in found.module().to_string()


def test_a_loop_ends_when_its_condition_says_so() -> None:
    body = loop_body(
        [node("Add", "s s", "t"), node("ReduceMax", "t", "l", keepdims=0), node("Less", "l h", "d")], "d t"
    )
    nodes = [node("Loop", "- - x", "y", body=body)]
    found = xlalite.onnx.load(model(nodes, {"x": (F32, [6])}, "y", {"h": np.array(100, np.float32)}))
    np.testing.assert_array_equal(found(VECTOR)[0], 32 * VECTOR)


def test_a_loop_whose_state_grows_is_unrolled() -> None:
    body = loop_body([node("Identity", "c", "d"), node("Concat", "s s", "t", axis=0)], "d t")
    found = xlalite.onnx.load(model([node("Loop", "m - x", "y", body=body)], {"x": (F32, [6]), "m": (S64, [])}, "y"))
    for count in (0, 2):
        assert found(VECTOR, np.array(count))[0].shape == (6 << count,)


def test_functions_of_the_model_get_attributes_of_their_callers() -> None:
    slope = ProtoMessage("onnx.AttributeProto").put("name", "alpha").put("ref_attr_name", "slope").put("type", 1)
    inner = node("LeakyRelu", "a", "b")
    inner.put_all("attribute", [slope])
    functions = [function("Leaky", [inner, node("Neg", "b", "c")], "a", "c", "slope")]
    nodes = [node("Leaky", "x", "y", "local", slope=0.5)]
    found = xlalite.onnx.load(model(nodes, {"x": (F32, [6])}, "y", functions=functions))
    np.testing.assert_array_equal(found(-VECTOR)[0], VECTOR / 2)


def test_a_function_that_calls_itself_is_refused() -> None:
    functions = [function("Again", [node("Again", "a", "b", "local")], "a", "b", "")]
    found = xlalite.onnx.load(model([node("Again", "x", "y", "local")], {"x": (F32, [6])}, "y", functions=functions))
    with pytest.raises(LoweringError, match="nested"):
        found(VECTOR)


def test_axes_are_attributes_before_version_13_and_inputs_from_then_on() -> None:
    old = model([node("Unsqueeze", "x", "y", axes=[0, 2])], {"x": (F32, [6])}, "y", version=11)
    new = model([node("Unsqueeze", "x a", "y")], {"x": (F32, [6])}, "y", {"a": np.array([0, 2])}, version=13)
    for each in (old, new):
        assert xlalite.onnx.load(each)(VECTOR)[0].shape == (1, 6, 1)


def test_softmax_before_version_13_counts_all_further_dimensions_as_one() -> None:
    x = np.zeros((2, 3, 4), np.float32)
    for version, expected in ((11, 1 / 12), (13, 1 / 4)):
        axis = {"axis": 1} if version < 13 else {"axis": -1}
        found = xlalite.onnx.load(
            model([node("Softmax", "x", "y", **axis)], {"x": (F32, x.shape)}, "y", version=version)
        )
        np.testing.assert_allclose(found(x)[0], expected, rtol=1e-6)


def external(location: str, **entries: str) -> bytes:
    stored = tensor("w", VECTOR)
    del stored.values["raw_data"]
    stored.put_word("data_location", "EXTERNAL")
    for key, text in {"location": location, **entries}.items():
        stored.append("external_data").put("key", key).put("value", text)
    message = ProtoMessage("onnx.ModelProto")
    found = graph([node("Neg", "w", "y")], {}, "y")
    found.put_all("initializer", [stored])
    message.append("opset_import").put("version", 21)
    return encode(message.put("ir_version", 10).put("graph", found))


def test_external_data_lies_beside_the_model(tmp_path: Path) -> None:
    (tmp_path / "weights").write_bytes(b"1234" + VECTOR.tobytes())
    (tmp_path / "m.onnx").write_bytes(external("weights", offset="4", length="24"))
    np.testing.assert_array_equal(xlalite.onnx.load(tmp_path / "m.onnx")()[0], -VECTOR)


@pytest.mark.parametrize(
    ("location", "entries"),
    [
        ("../weights", {}),
        ("/etc/passwd", {}),
        ("link", {}),
        ("missing", {}),
        ("", {}),
        (".", {}),
        ("a\0b", {}),
        ("weights", {"offset": "1"}),
        ("weights", {"offset": "-4"}),
        ("weights", {"length": "23"}),
        ("weights", {"offset": "9" * 30}),
    ],
)
def test_external_data_elsewhere_is_refused(tmp_path: Path, location: str, entries: dict) -> None:
    (tmp_path / "weights").write_bytes(VECTOR.tobytes())
    inner = tmp_path / "model"
    inner.mkdir()
    (inner / "weights").write_bytes(VECTOR.tobytes())
    (inner / "link").symlink_to(tmp_path / "weights")
    (inner / "m.onnx").write_bytes(external(location, **entries))
    with pytest.raises(ParseError, match=r"external data|ends before"):
        xlalite.onnx.load(inner / "m.onnx")


def test_external_data_of_bytes_is_refused() -> None:
    with pytest.raises(ParseError, match="not read from a file"):
        xlalite.onnx.load(external("weights"))


def test_four_bit_numbers_lie_two_in_a_byte() -> None:
    stored = ProtoMessage("onnx.TensorProto").put("data_type", 22).put_all("dims", [3]).put("raw_data", b"\xf1\x07")
    constant = node("Constant", "", "c")
    constant.put_all(
        "attribute", [ProtoMessage("onnx.AttributeProto").put("name", "value").put("type", 4).put("t", stored)]
    )
    found = xlalite.onnx.load(model([constant, node("Cast", "c", "y", to=7)], {}, "y"))
    assert found()[0].tolist() == [1, -1, 7]


def test_an_operator_without_a_rule_is_named() -> None:
    found = xlalite.onnx.load(model([node("Frobnicate", "x", "y")], {"x": (F32, [6])}, "y"))
    with pytest.raises(LoweringError, match=r"importing Frobnicate 'y': there is no rule"):
        found(VECTOR)


def test_errors_say_at_which_node() -> None:
    found = xlalite.onnx.load(model([node("Concat", "x x", "y", axis=3)], {"x": (F32, [6])}, "y"))
    with pytest.raises(LoweringError, match=r"importing Concat 'y': axis 3 is not in \[-1, 1\)"):
        found(VECTOR)


def test_a_value_that_nothing_gives_is_refused() -> None:
    found = xlalite.onnx.load(model([node("Neg", "b", "a"), node("Neg", "a", "b")], {}, "b"))
    with pytest.raises(LoweringError, match="'b' is not given"):
        found()


def test_strings_are_refused() -> None:
    infos = [ProtoMessage("onnx.ValueInfoProto").put("name", "x")]
    infos[0].open("type").open("tensor_type").put("elem_type", 8)
    message = ProtoMessage("onnx.ModelProto")
    message.put("graph", graph([node("Identity", "x", "y")], {}, "y").put_all("input", infos))
    with pytest.raises(ArgumentError, match="strings"):
        xlalite.onnx.load(encode(message))("text")


def test_bytes_that_are_no_model_are_refused() -> None:
    with pytest.raises(ParseError, match="no graph"):
        xlalite.onnx.load(b"")


def test_values_without_a_type_are_refused() -> None:
    message = ProtoMessage("onnx.ModelProto")
    untyped = ProtoMessage("onnx.ValueInfoProto").put("name", "x")
    message.put("graph", graph([node("Neg", "x", "y")], {}, "y").put_all("input", [untyped]))
    with pytest.raises(ArgumentError, match="cannot be given"):
        xlalite.onnx.load(encode(message))(VECTOR)
