"""Checkpoints in TensorFlow's format, also those that TensorFlow wrote, and the saver over them."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from xlalite.client.config import ConfigProto
from xlalite.client.session import Session
from xlalite.files import checkpoints, replacing
from xlalite.files.checkpoint_state import (
    get_checkpoint_state,
    latest_checkpoint,
    list_variables,
    load_checkpoint,
    load_variable,
)
from xlalite.files.checkpoints import (
    CheckpointReader,
    Part,
    checkpoint_exists,
    data_path,
    index_path,
    write_checkpoint,
)
from xlalite.files.tables import read_table, write_table
from xlalite.framework.graph.dtypes import float32
from xlalite.framework.graph.errors import DataLossError, GraphError, InvalidArgumentError, NotFoundError
from xlalite.framework.graph.graph import Graph
from xlalite.framework.graph.tensor_shape import TensorShape
from xlalite.hlo.errors import ShapeError
from xlalite.hlo.proto.wire import decode, encode
from xlalite.messages.data_types import shape_message
from xlalite.ops.helpers.constant import constant
from xlalite.ops.helpers.node import operation
from xlalite.ops.training.checkpoint_init import init_from_checkpoint
from xlalite.ops.training.saver import Saver
from xlalite.ops.training.variable import Variable, global_variables_initializer

MADE_BY_TENSORFLOW = Path(__file__).parent / "made_by_tensorflow"


@pytest.fixture(autouse=True)
def graph() -> Iterator[Graph]:
    with Graph().as_default() as new:
        yield new


def texts(*values: bytes) -> np.ndarray:
    array = np.empty(len(values), object)
    array[:] = values
    return array


VALUES: dict[str, np.ndarray] = {
    "w": np.arange(12, dtype=np.float32).reshape(3, 4),
    "scope/step": np.array(7, np.int64),
    "flags": np.array([True, False]),
    "half": np.array([1.5], ml_dtypes.bfloat16),
    "empty": np.zeros((0, 3)),
    "complex": np.array([1 + 2j], np.complex64),
    "text": texts(b"a", b"", b"x" * 300, b"\xff\0"),
}


@pytest.mark.parametrize("count", [0, 1, 16, 17, 40_000])
def test_tables_come_back(count: int) -> None:
    entries = {f"key {i:06d}".encode(): bytes([i % 256]) * (i % 20) for i in range(count)}
    assert read_table(write_table(entries), "x") == entries


def test_values_of_all_types_come_back(tmp_path: Path) -> None:
    prefix = str(tmp_path / "new" / "model")
    write_checkpoint(prefix, VALUES)
    reader = CheckpointReader(prefix)
    assert reader.get_variable_to_shape_map() == {name: [*value.shape] for name, value in VALUES.items()}
    for name, value in VALUES.items():
        found = reader.get_tensor(name)
        assert found.dtype == value.dtype
        np.testing.assert_array_equal(found, value)
    assert not reader.has_tensor("z")
    with pytest.raises(NotFoundError, match="Key z not found in checkpoint"):
        reader.get_tensor("z")


def test_values_of_foreign_byte_order_come_back(tmp_path: Path) -> None:
    foreign = np.array([1.5, 2.5], np.dtype(np.float32).newbyteorder())
    write_checkpoint(str(tmp_path / "model"), {"v": foreign})
    assert CheckpointReader(tmp_path / "model").get_tensor("v").tolist() == [1.5, 2.5]


def test_checkpoints_of_tensorflow_are_read() -> None:
    latest = latest_checkpoint(MADE_BY_TENSORFLOW)
    assert latest == str(MADE_BY_TENSORFLOW / "model-7")
    assert list_variables(MADE_BY_TENSORFLOW) == [
        ("flags", [2]), ("global_step", []), ("half", [2]), ("part", [5, 3]), ("text", [2]), ("w", [2, 3])
    ]  # fmt: skip
    read = load_checkpoint(MADE_BY_TENSORFLOW).get_tensor
    np.testing.assert_array_equal(read("w"), np.arange(6).reshape(2, 3))
    np.testing.assert_array_equal(read("text"), texts(b"x", b"yy"))
    np.testing.assert_array_equal(read("half").astype(np.float32), [1.5, -2])
    np.testing.assert_array_equal(read("flags"), [True, False])
    np.testing.assert_array_equal(read("part"), np.repeat([0.0, 3.0], [3, 2])[:, None].repeat(3, 1))
    assert load_variable(MADE_BY_TENSORFLOW, "global_step") == 7


class CrashError(Exception):
    """Stands for the end of the process."""


@pytest.mark.parametrize("before", [0, 1], ids=["after a whole one", "after a crash"])
@pytest.mark.parametrize("crash_at", range(8))
def test_a_crash_while_a_checkpoint_is_overwritten_loses_nothing(
    before: int, crash_at: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prefix = str(tmp_path / "model")
    write_checkpoint(prefix, {"w": np.zeros(3)})
    calls = 0

    def crashing(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls == crash_at + 1:
                raise CrashError
            return function(*arguments)

        return call

    if before:
        # The state between the two changes of the index.
        write_checkpoint(prefix, {"w": np.full(3, 0.5)})
        os.link(data_path(prefix, 0, 1), data_path(prefix, 0, 2))
        entries = read_table(Path(index_path(prefix)).read_bytes(), prefix)
        entries[b""] = b"\x08\x02" + entries[b""][2:]
        Path(index_path(prefix)).write_bytes(write_table(entries))
    replace, unlink = crashing(os.replace), crashing(os.unlink)
    monkeypatch.setattr(replacing.os, "replace", replace)
    monkeypatch.setattr(checkpoints.os, "unlink", unlink)
    try:
        write_checkpoint(prefix, {"w": np.ones(3)})
        finished = True
    except CrashError:
        finished = False
    assert finished == (calls <= crash_at)
    found = CheckpointReader(prefix).get_tensor("w")
    assert found.tolist() in ([0.5 * before] * 3, [1, 1, 1])
    if finished:
        assert found.tolist() == [1, 1, 1]
        assert sorted(os.listdir(tmp_path)) == ["model.data-00000-of-00001", "model.index"]
    monkeypatch.undo()
    write_checkpoint(prefix, {"w": np.full(3, 2.0)})
    assert sorted(os.listdir(tmp_path)) == ["model.data-00000-of-00001", "model.index"]
    assert CheckpointReader(prefix).get_tensor("w").tolist() == [2, 2, 2]


@pytest.mark.parametrize("which", ["index", "data"])
def test_a_damaged_file_is_an_error(which: str, tmp_path: Path) -> None:
    prefix = str(tmp_path / "model")
    write_checkpoint(prefix, VALUES)
    path = Path(index_path(prefix) if which == "index" else data_path(prefix, 0, 1))
    whole = path.read_bytes()
    for position in range(0, len(whole), 7):
        path.write_bytes(whole[:position] + bytes([whole[position] ^ 1]) + whole[position + 1 :])
        try:
            found = {name: CheckpointReader(prefix).get_tensor(name) for name in VALUES}
        except (DataLossError, NotFoundError):
            continue
        assert all(np.array_equal(found[name], value) for name, value in VALUES.items())
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataLossError):
        [CheckpointReader(prefix).get_tensor(name) for name in VALUES]


def _damaged_entry(field: str, number: int) -> Callable[[dict[bytes, bytes]], None]:
    def damage(table: dict[bytes, bytes]) -> None:
        table[b"w"] = encode(decode(table[b"w"], "BundleEntryProto").put(field, number))

    return damage


def _size_of_whole(table: dict[bytes, bytes]) -> None:
    message = decode(table[b"v"], "BundleEntryProto")
    table[b"v"] = encode(message.put("shape", shape_message(TensorShape([1 << 40, 3]))))


def _unknown_size(table: dict[bytes, bytes]) -> None:
    table[b"w"] = encode(decode(table[b"w"], "BundleEntryProto").put("shape", shape_message(TensorShape([None]))))


def _rank_of_whole(table: dict[bytes, bytes]) -> None:
    message = decode(table[b"v"], "BundleEntryProto")
    table[b"v"] = encode(message.put("shape", shape_message(TensorShape([6]))))


def _name_in_no_encoding(table: dict[bytes, bytes]) -> None:
    table[b"\xff"] = table.pop(b"w")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (_damaged_entry("offset", -1), "w goes beyond the end"),
        (_damaged_entry("offset", 1 << 62), "w goes beyond the end"),
        (_damaged_entry("size", -1), "w goes beyond the end"),
        (_damaged_entry("size", 1 << 62), "w goes beyond the end"),
        (_damaged_entry("size", 8), "w: cannot reshape"),
        (_size_of_whole, "v: its parts do not fill"),
        (_rank_of_whole, "v: .* shorter"),
        (_unknown_size, "not fully known"),
        (_name_in_no_encoding, "codec can't decode"),
    ],
)
def test_an_index_whose_entries_fit_nothing_is_an_error(
    damage: Callable[[dict[bytes, bytes]], None], message: str, tmp_path: Path
) -> None:
    prefix = str(tmp_path / "model")
    part = Part((2, 3), (0, 0), np.ones((2, 3), np.float32))
    write_checkpoint(prefix, {"v": [part], "w": np.ones(3, np.float32)})
    index = Path(index_path(prefix))
    table = read_table(index.read_bytes(), "index")
    damage(table)
    index.write_bytes(write_table(table))
    with pytest.raises(DataLossError, match=message):
        [CheckpointReader(prefix).get_tensor(name) for name in ("v", "w")]


@pytest.mark.parametrize("level", [0, 1], ids=["JIT off", "JIT on"])
def test_a_session_goes_on_where_another_stopped(level: int, tmp_path: Path) -> None:
    config = ConfigProto()
    config.graph_options.optimizer_options.global_jit_level = level
    v, step = Variable([1.0, 2.0], name="v"), Variable(0, name="step")
    saver = Saver()
    with Session(config=config) as first:
        first.run(global_variables_initializer())
        first.run([v.assign_add([1.0, 1.0]), step.assign_add(5)])
        path = saver.save(first, tmp_path / "model", global_step=step)
    assert path == str(tmp_path / "model-5")
    assert latest_checkpoint(tmp_path) == path
    with Session(config=config) as second:
        saver.restore(second, path)
        assert second.run([v, step])[0].tolist() == [2, 3]
        second.run(v.assign_add([1.0, 1.0]).op)
        assert second.run(v).tolist() == [3, 4]


def test_the_latest_few_checkpoints_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Variable([1.0], name="v")
    saver = Saver(max_to_keep=2)
    with Session() as session:
        session.run(global_variables_initializer())
        paths = [saver.save(session, "out/model", global_step=number) for number in range(4)]
    assert saver.last_checkpoints == paths[2:]
    assert [checkpoint_exists(path) for path in paths] == [False, False, True, True]
    state = get_checkpoint_state("out")
    assert state.model_checkpoint_path == os.path.join("out", "model-3")
    assert [*state.all_model_checkpoint_paths] == [os.path.join("out", "model-2"), os.path.join("out", "model-3")]
    assert 'model_checkpoint_path: "model-3"' in Path("out/checkpoint").read_text()
    other = Saver()
    other.recover_last_checkpoints(state.all_model_checkpoint_paths)
    assert len(other.last_checkpoints) == 2


def test_variables_have_other_names_in_the_checkpoint_where_asked(tmp_path: Path) -> None:
    v = Variable([1.0, 2.0], name="v")
    with Session() as session:
        session.run(global_variables_initializer())
        path = Saver({"w": v}).save(session, tmp_path / "m")
    assert list_variables(str(path)) == [("w", [2])]


def test_what_does_not_fit_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(GraphError, match="No variables to save"):
        Saver()
    assert Saver(allow_empty=True).save(Session(), tmp_path / "m") is None
    v = Variable([1.0, 2.0], name="v")
    with pytest.raises(GraphError, match="At least two variables have the same name: v"):
        Saver([v, _renamed("v")])
    saver = Saver([v])
    session = Session()
    with pytest.raises(GraphError, match="not a valid checkpoint: "):
        saver.restore(session, tmp_path / "none")
    write_checkpoint(str(tmp_path / "a"), {"other": np.ones(2, np.float32)})
    with pytest.raises(NotFoundError, match="Key v not found in checkpoint"):
        saver.restore(session, tmp_path / "a")
    write_checkpoint(str(tmp_path / "b"), {"v": np.ones(3, np.float32)})
    with pytest.raises(InvalidArgumentError, match=r"variable 'v': found shape \(3,\)"):
        saver.restore(session, tmp_path / "b")
    write_checkpoint(str(tmp_path / "c"), {"v": np.ones(2, np.float64)})
    with pytest.raises(InvalidArgumentError, match="element type float64, expected float32"):
        saver.restore(session, tmp_path / "c")


@pytest.mark.parametrize(
    ("names", "parts", "message"),
    [
        (["w", "w"], [""], "2 names and 1 parts for 1 tensors"),
        (["w"], ["", ""], "1 names and 2 parts for 1 tensors"),
        (["w"], ["3 0,2:-"], "expected texts such as"),
        (["w"], ["3 0"], "expected texts such as"),
        (["w"], [" "], "expected texts such as"),
        (["w"], ["4 0,2"], r"has sizes \[3\], expected \[4\]"),
    ],
)
def test_what_a_graph_asks_of_a_checkpoint_is_checked(
    names: list[str], parts: list[str], message: str, tmp_path: Path
) -> None:
    prefix = str(tmp_path / "model")
    write_checkpoint(prefix, {"w": np.ones(3, np.float32)})
    inputs = [constant(prefix), constant(names), constant(parts)]
    values = operation("RestoreV2", inputs, {"dtypes": (float32,)}).outputs
    with Session() as session, pytest.raises(InvalidArgumentError, match=message):
        session.run(values)


def test_variables_begin_with_values_of_a_checkpoint(tmp_path: Path) -> None:
    values = {"bert/a": np.float32([1, 2]), "bert/b": np.float32([3]), "c": np.float32([4])}
    write_checkpoint(str(tmp_path / "m"), values)
    a, b, c = (Variable(np.zeros_like(v), name=n) for n, v in zip(("x/a", "x/b", "y"), values.values(), strict=True))
    init_from_checkpoint(tmp_path / "m", {"bert/": "x/", "c": "y"})
    with Session() as session:
        session.run(global_variables_initializer())
        assert [each.tolist() for each in session.run([a, b, c])] == [[1, 2], [3], [4]]
    init_from_checkpoint(tmp_path / "m", {"c": b})
    with pytest.raises(GraphError, match="'none' for variable 'y' is not in the checkpoint"):
        init_from_checkpoint(tmp_path / "m", {"none": c})
    with pytest.raises(GraphError, match="no variable 'z'"):
        init_from_checkpoint(tmp_path / "m", {"c": "z"})
    with pytest.raises(ShapeError, match="variable 'x/a' has shape"):
        init_from_checkpoint(tmp_path / "m", {"c": a})


def _renamed(name: str) -> Variable:
    with Graph().as_default():
        return Variable(1.0, name=name)
