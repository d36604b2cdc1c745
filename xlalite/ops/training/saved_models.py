"""SavedModels: directories with graphs, the values of their variables and the files that they need."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from xlalite.files.checkpoints import checkpoint_exists
from xlalite.files.graph_files import write_message
from xlalite.framework.graph.default_graph import get_default_graph
from xlalite.framework.graph.dtypes import string
from xlalite.framework.graph.errors import InvalidArgumentError
from xlalite.framework.graph.graph import Graph
from xlalite.framework.graph.graph_keys import GraphKeys
from xlalite.framework.graph.sparse_tensor import SparseTensor
from xlalite.framework.graph.tensor import Tensor
from xlalite.framework.meaning.static_value import constant_value
from xlalite.messages.classes import CLASSES
from xlalite.messages.data_types import DTYPE_NUMBERS, shape_message
from xlalite.ops.functions.control_flow import group
from xlalite.ops.training.meta_graphs import export_meta_graph, read_message
from xlalite.ops.training.saver import Saver, import_meta_graph
from xlalite.ops.training.variable import local_variables, variables_initializer

SERVING, TRAINING, EVAL, GPU, TPU = "serve", "train", "eval", "gpu", "tpu"

DEFAULT_SERVING_SIGNATURE_DEF_KEY = "serving_default"
PREDICT_METHOD_NAME, PREDICT_INPUTS, PREDICT_OUTPUTS = "tensorflow/serving/predict", "inputs", "outputs"
CLASSIFY_METHOD_NAME, CLASSIFY_INPUTS = "tensorflow/serving/classify", "inputs"
CLASSIFY_OUTPUT_CLASSES, CLASSIFY_OUTPUT_SCORES = "classes", "scores"
REGRESS_METHOD_NAME, REGRESS_INPUTS, REGRESS_OUTPUTS = "tensorflow/serving/regress", "inputs", "outputs"

SAVED_MODEL_SCHEMA_VERSION = 1
SAVED_MODEL_FILENAME_PB, SAVED_MODEL_FILENAME_PBTXT = "saved_model.pb", "saved_model.pbtxt"
VARIABLES_DIRECTORY, VARIABLES_FILENAME, ASSETS_DIRECTORY = "variables", "variables", "assets"
ASSETS_KEY, MAIN_OP_KEY, LEGACY_INIT_OP_KEY = "saved_model_assets", "saved_model_main_op", "legacy_init_op"
TRAIN_OP_KEY = "saved_model_train_op"

_INIT_SIGNATURE, _TRAIN_SIGNATURE = "__saved_model_init_op", "__saved_model_train_op"
_ASSET_TYPE: Final = "type.googleapis.com/tensorflow.AssetFileDef"


# Signatures: what a model takes and gives, by name.


def build_tensor_info(tensor: Any) -> Any:
    """What there is to know of a tensor, as a `TensorInfo`."""
    if isinstance(tensor, SparseTensor):
        raise InvalidArgumentError(None, None, "a signature names the parts of a SparseTensor, not the whole")
    info = CLASSES["TensorInfo"](name=tensor.name, dtype=DTYPE_NUMBERS[tensor.dtype])
    info.tensor_shape.take_proto(shape_message(tensor.shape))
    return info


def get_tensor_from_tensor_info(tensor_info: Any, graph: Graph | None = None, import_scope: str | None = None) -> Any:
    """The tensor that a `TensorInfo` names."""
    name = f"{import_scope}/{tensor_info.name}" if import_scope else tensor_info.name
    return (graph or get_default_graph()).get_tensor_by_name(name)


def build_signature_def(
    inputs: Mapping[str, Any] | None = None, outputs: Mapping[str, Any] | None = None, method_name: str | None = None
) -> Any:
    """A `SignatureDef` of messages `TensorInfo` by name."""
    message = CLASSES["SignatureDef"](method_name=method_name or "")
    for field, infos in ((message.inputs, inputs), (message.outputs, outputs)):
        for name, info in (infos or {}).items():
            field[name].CopyFrom(info)
    return message


def predict_signature_def(inputs: Mapping[str, Any], outputs: Mapping[str, Any]) -> Any:
    """The signature of a model that takes and gives these tensors."""
    return _signature(inputs, outputs, PREDICT_METHOD_NAME)


def classification_signature_def(examples: Any, classes: Any = None, scores: Any = None) -> Any:
    """The signature of a classifier of serialised examples."""
    outputs = {CLASSIFY_OUTPUT_CLASSES: classes, CLASSIFY_OUTPUT_SCORES: scores}
    return _signature({CLASSIFY_INPUTS: examples}, outputs, CLASSIFY_METHOD_NAME)


def regression_signature_def(examples: Any, predictions: Any) -> Any:
    """The signature of a model that gives a number for each serialised example."""
    return _signature({REGRESS_INPUTS: examples}, {REGRESS_OUTPUTS: predictions}, REGRESS_METHOD_NAME)


def _signature(inputs: Mapping[str, Any], outputs: Mapping[str, Any], method: str) -> Any:
    taken, given = (
        {name: build_tensor_info(tensor) for name, tensor in each.items() if tensor is not None}
        for each in (inputs, outputs)
    )
    if not taken or not given:
        raise ValueError("Signature inputs and outputs cannot be None or empty")
    return build_signature_def(taken, given, method)


# Writing.


class SavedModelBuilder:
    """Writes a SavedModel: first a graph with the values of its variables, then others that share them."""

    def __init__(self, export_dir: str | os.PathLike[str]) -> None:
        """A model for a directory, which must be empty or not there.

        Raises:
            AssertionError: it is not.
        """
        self._directory = Path(export_dir)
        if self._directory.is_dir() and any(self._directory.iterdir()):
            raise AssertionError(f"Export directory {export_dir} already exists and is not empty")
        self._directory.mkdir(parents=True, exist_ok=True)
        self._assets: dict[Path, str] = {}
        self._message = CLASSES["SavedModel"](saved_model_schema_version=SAVED_MODEL_SCHEMA_VERSION)

    def add_meta_graph_and_variables(
        self,
        sess: Any,
        tags: Iterable[str],
        signature_def_map: Mapping[str, Any] | None = None,
        assets_collection: Iterable[Tensor] | None = None,
        legacy_init_op: Any = None,
        clear_devices: bool = False,
        main_op: Any = None,
        strip_default_attrs: bool = False,
        saver: Saver | None = None,
        assets_list: Iterable[Tensor] | None = None,
        init_op: Any = None,
        train_op: Any = None,
    ) -> None:
        """Adds the default graph, and writes the values that its variables have in a session.

        Args:
            sess: The session.
            tags: What the graph is for.
            signature_def_map: Signatures by name.
            assets_collection: Constants with the paths of files that go along with the model.
            legacy_init_op: Runs after loading.
            clear_devices: Whether to leave out devices.
            main_op: Runs after loading.
            strip_default_attrs: Accepted for compatibility.
            saver: Saves the variables; all global ones by default.
            assets_list: As `assets_collection`.
            init_op: Runs after loading.
            train_op: Does a step of training.
        """
        if self._message.meta_graphs:
            raise AssertionError("Graph state including variables and assets has already been saved")
        with sess.graph.as_default():
            found = saver or Saver(allow_empty=True)
            directory = self._directory / VARIABLES_DIRECTORY
            directory.mkdir(exist_ok=True)
            path = directory / VARIABLES_FILENAME
            found.save(sess, path, write_meta_graph=False, write_state=False)
            self._add(tags, signature_def_map, assets_list or assets_collection, clear_devices, found, train_op)
            self._run_later(main_op if main_op is not None else init_op, legacy_init_op)

    def add_meta_graph(
        self,
        tags: Iterable[str],
        signature_def_map: Mapping[str, Any] | None = None,
        assets_collection: Iterable[Tensor] | None = None,
        legacy_init_op: Any = None,
        clear_devices: bool = False,
        main_op: Any = None,
        strip_default_attrs: bool = False,
        saver: Saver | None = None,
        assets_list: Iterable[Tensor] | None = None,
        init_op: Any = None,
        train_op: Any = None,
    ) -> None:
        """Adds the default graph, whose variables are among those of the first one."""
        if not self._message.meta_graphs:
            raise AssertionError("Graph state including variables and assets has not been saved yet")
        found = saver or Saver(allow_empty=True)
        self._add(tags, signature_def_map, assets_list or assets_collection, clear_devices, found, train_op)
        self._run_later(main_op if main_op is not None else init_op, legacy_init_op)

    def save(self, as_text: bool = False) -> bytes:
        """Writes the graphs; gives the file's path."""
        path = self._directory / (SAVED_MODEL_FILENAME_PBTXT if as_text else SAVED_MODEL_FILENAME_PB)
        write_message(path, self._message, as_text)
        return os.fsencode(path)

    def _add(
        self,
        tags: Iterable[str],
        signatures: Mapping[str, Any] | None,
        assets: Iterable[Tensor] | None,
        clear_devices: bool,
        saver: Saver,
        train_op: Any,
    ) -> None:
        info = CLASSES["MetaGraphDef.MetaInfoDef"]()
        info.tags.extend(tags)
        message = export_meta_graph(None, info, saver_def=saver.as_saver_def(), clear_devices=clear_devices)
        for name, signature in (signatures or {}).items():
            message.signature_def[name].CopyFrom(signature)
        if train_op is not None:
            message.collection_def[TRAIN_OP_KEY].node_list.value.append(train_op.name)
        for tensor in assets or ():
            self._add_asset(message, tensor)
        self._message.meta_graphs.append(message)

    def _add_asset(self, message: Any, tensor: Tensor) -> None:
        source = Path(os.fsdecode(_text_of(tensor)))
        directory = self._directory / ASSETS_DIRECTORY
        directory.mkdir(exist_ok=True)
        name = self._assets.setdefault(source, _unused_name(source, self._assets.values()))
        shutil.copyfile(source, directory / name)
        asset = CLASSES["AssetFileDef"](filename=name)
        asset.tensor_info.name = tensor.name
        held = message.collection_def[ASSETS_KEY].any_list.value.add(type_url=_ASSET_TYPE)
        held.value = asset.SerializeToString()

    def _run_later(self, main_op: Any, legacy_init_op: Any) -> None:
        collections = self._message.meta_graphs[-1].collection_def
        for key, each in ((MAIN_OP_KEY, main_op), (LEGACY_INIT_OP_KEY, legacy_init_op)):
            if each is not None:
                collections[key].node_list.value.append(each.name)


def _text_of(tensor: Tensor) -> Any:
    value = tensor.op.attrs.get("value") if tensor.op.type == "Const" else constant_value(tensor)
    if value is None or tensor.dtype is not string or value.shape:
        raise InvalidArgumentError(None, None, f"asset {tensor.name!r} is not a constant with a path")
    return value.item()


def _unused_name(source: Path, used: Iterable[str]) -> str:
    """The file's name; with a number where another file has it."""
    taken = set(used)
    tries = (f"{source.name}_{number}" for number in range(1, len(taken) + 1))
    return next(name for name in (source.name, *tries) if name not in taken)


def simple_save(
    session: Any,
    export_dir: str | os.PathLike[str],
    inputs: Mapping[str, Any],
    outputs: Mapping[str, Any],
    legacy_init_op: Any = None,
) -> None:
    """Writes a session's graph and variables as a model for serving, with one signature."""
    signatures = {DEFAULT_SERVING_SIGNATURE_DEF_KEY: predict_signature_def(inputs, outputs)}
    builder = SavedModelBuilder(export_dir)
    with session.graph.as_default():
        assets = get_default_graph().get_collection(GraphKeys.ASSET_FILEPATHS)
    builder.add_meta_graph_and_variables(
        session, [SERVING], signatures, assets, main_op=legacy_init_op, clear_devices=True
    )
    builder.save()


def main_op() -> Any:
    """An operation that initialises what no checkpoint holds."""
    return group(variables_initializer(local_variables()), name="init_all_tables")


def main_op_with_restore(restore_op_name: str) -> Any:
    """The same, after an operation that restores."""
    restored = get_default_graph().get_operation_by_name(restore_op_name)
    with get_default_graph().control_dependencies([restored]):
        return main_op()


# Loading.


def maybe_saved_model_directory(export_dir: str | os.PathLike[str]) -> bool:
    """Whether a directory holds a SavedModel."""
    return any((Path(export_dir) / name).is_file() for name in (SAVED_MODEL_FILENAME_PB, SAVED_MODEL_FILENAME_PBTXT))


def load(
    sess: Any,
    tags: Iterable[str],
    export_dir: str | os.PathLike[str],
    import_scope: str | None = None,
    **unused: Any,
) -> Any:
    """Adds the graph with these tags to a session's graph and gives its variables their values; gives the message.

    Raises:
        OSError: there is no SavedModel.
        RuntimeError: it has no graph with just these tags.
    """
    directory = Path(export_dir)
    wanted = {tags} if isinstance(tags, str) else set(tags)
    model = _read(directory)
    chosen = [each for each in model.meta_graphs if set(each.meta_info_def.tags) == wanted]
    if not chosen:
        there = [sorted(each.meta_info_def.tags) for each in model.meta_graphs]
        raise RuntimeError(f"MetaGraphDef associated with tags {sorted(wanted)} could not be found; there are {there}")
    message = chosen[0]
    prefix = f"{import_scope}/" if import_scope else ""
    with sess.graph.as_default():
        saver = import_meta_graph(message, import_scope=import_scope)
    path = os.fspath(directory / VARIABLES_DIRECTORY / VARIABLES_FILENAME)
    if saver is not None and checkpoint_exists(path):
        saver.restore(sess, path)
    assets = {
        prefix + asset.tensor_info.name: os.fspath(directory / ASSETS_DIRECTORY / _inside(asset.filename))
        for asset in _assets(message)
    }
    for name in _later(message):
        sess.run(prefix + name, assets)
    return message


def _read(directory: Path) -> Any:
    for name in (SAVED_MODEL_FILENAME_PB, SAVED_MODEL_FILENAME_PBTXT):
        if (directory / name).is_file():
            return read_message("SavedModel", directory / name)
    raise OSError(f"SavedModel file does not exist at: {directory}/{{saved_model.pbtxt|saved_model.pb}}")


def _assets(message: Any) -> Sequence[Any]:
    if message.asset_file_def:
        return list(message.asset_file_def)
    held = message.collection_def[ASSETS_KEY].any_list.value if ASSETS_KEY in message.collection_def else ()
    return [CLASSES["AssetFileDef"].FromString(each.value) for each in held]


def _inside(name: str) -> str:
    """The name of an asset, which must not lead out of the model's directory."""
    if Path(name).is_absolute() or ".." in Path(name).parts:
        raise InvalidArgumentError(None, None, f"SavedModel: asset {name!r} is not in the directory of assets")
    return name


def _later(message: Any) -> list[str]:
    """The names of the operations to run after loading."""
    if _INIT_SIGNATURE in message.signature_def:
        outputs = message.signature_def[_INIT_SIGNATURE].outputs
        return [outputs[name].name for name in outputs]
    keys = [key for key in (MAIN_OP_KEY, LEGACY_INIT_OP_KEY) if key in message.collection_def]
    return [name for key in keys[:1] for name in message.collection_def[key].node_list.value]
