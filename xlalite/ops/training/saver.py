"""`train.Saver`: writes variables to checkpoints, reads them back, and keeps the latest few."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from xlalite.files.checkpoint_state import get_checkpoint_mtimes, remove_checkpoint, update_checkpoint_state
from xlalite.files.checkpoints import checkpoint_exists
from xlalite.framework.graph.default_graph import get_default_graph
from xlalite.framework.graph.dtypes import string
from xlalite.framework.graph.errors import GraphError, InvalidArgumentError, NotFoundError
from xlalite.framework.graph.operation import Operation
from xlalite.framework.graph.tensor import Tensor
from xlalite.hlo.errors import ShapeError
from xlalite.messages.classes import CLASSES
from xlalite.ops.functions.array import reshape
from xlalite.ops.functions.control_flow import group
from xlalite.ops.helpers.constant import constant
from xlalite.ops.helpers.node import node, operation
from xlalite.ops.training.meta_graphs import add_meta_graph, export_meta_graph
from xlalite.ops.training.partitioned_variable import PartitionedVariable
from xlalite.ops.training.variable import Variable, global_variables

_FOREVER_HOURS = 10000.0


class Saver:
    """Saves and restores variables. The operations for it are made with the saver."""

    def __init__(
        self,
        var_list: Mapping[str, Variable] | Iterable[Variable] | None = None,
        reshape: bool = False,
        sharded: bool = False,
        max_to_keep: int | None = 5,
        keep_checkpoint_every_n_hours: float = _FOREVER_HOURS,
        name: str | None = None,
        restore_sequentially: bool = False,
        saver_def: Any = None,
        builder: Any = None,
        defer_build: bool = False,
        allow_empty: bool = False,
        write_version: Any = 2,
        pad_step_number: bool = False,
        save_relative_paths: bool = False,
        filename: str | None = None,
    ) -> None:
        """A saver of variables.

        Args:
            var_list: The variables, perhaps by their names in checkpoints; all global ones by default.
            reshape: Whether values may be restored to variables of other sizes with as many elements.
            sharded: Accepted for compatibility: all values go to one file.
            max_to_keep: How many checkpoints stay; all, if 0 or None.
            keep_checkpoint_every_n_hours: Every so often, one stays for good.
            name: Name scope of the operations.
            restore_sequentially: Accepted for compatibility.
            saver_def: Names of operations that the graph has already.
            builder: Accepted for compatibility.
            defer_build: Make the operations at the first use.
            allow_empty: Whether there may be no variables; then nothing is written.
            write_version: Accepted for compatibility: only format V2 is written.
            pad_step_number: Write steps with leading zeros.
            save_relative_paths: Whether the file `checkpoint` has relative paths.
            filename: The default path of the operations.

        Raises:
            GraphError: there are no variables, or two of the same name.
        """
        self._var_list = var_list
        self._reshape = reshape
        self._name = name
        self._allow_empty = allow_empty
        self._pad_step_number = pad_step_number
        self._save_relative_paths = save_relative_paths
        self._filename = filename or "model"
        self._max_to_keep = max_to_keep or 0
        self._every_seconds = keep_checkpoint_every_n_hours * 3600
        self._keep_next = time.time() + self._every_seconds
        self._kept: list[tuple[str, float]] = []
        self.saver_def: Any = saver_def
        if not defer_build:
            self.build()

    def build(self) -> None:
        """Makes the operations, if they are not there."""
        if self.saver_def is None:
            self.saver_def = self._build()

    def as_saver_def(self) -> Any:
        """The names of the operations, as a `SaverDef`."""
        return self.saver_def

    to_proto = as_saver_def

    @property
    def last_checkpoints(self) -> list[str]:
        """The checkpoints that are kept, the oldest first."""
        return [path for path, _ in self._kept]

    def set_last_checkpoints(self, last_checkpoints: Sequence[str]) -> None:
        """Says which checkpoints there are, the oldest first."""
        self._kept = [(path, time.time()) for path in last_checkpoints]

    def set_last_checkpoints_with_time(self, last_checkpoints_with_time: Sequence[tuple[str, float]]) -> None:
        """Says which checkpoints there are and when they were written, the oldest first."""
        self._kept = list(last_checkpoints_with_time)

    def recover_last_checkpoints(self, checkpoint_paths: Iterable[str]) -> None:
        """Goes on with the checkpoints of another run; those that are gone are left out."""
        there = [path for path in checkpoint_paths if checkpoint_exists(path)]
        self._kept = list(zip(there, get_checkpoint_mtimes(there), strict=True))

    def save(
        self,
        sess: Any,
        save_path: str | os.PathLike[str],
        global_step: Any = None,
        latest_filename: str | None = None,
        meta_graph_suffix: str = "meta",
        write_meta_graph: bool = True,
        write_state: bool = True,
        strip_default_attrs: bool = False,
        save_debug_info: bool = False,
    ) -> str | None:
        """Writes the variables of a session; gives the checkpoint's path, which ends in the step.

        Args:
            sess: The session.
            save_path: Where to.
            global_step: The step: a number, or the variable that counts.
            latest_filename: The name of the file `checkpoint`.
            meta_graph_suffix: The last part of the name of the file with the graph.
            write_meta_graph: Whether to write the graph too.
            write_state: Whether to write the file `checkpoint`, and to remove old checkpoints.
            strip_default_attrs: Accepted for compatibility.
            save_debug_info: Accepted for compatibility.
        """
        self.build()
        if self.saver_def is None:
            return None
        path = os.fspath(save_path)
        if global_step is not None:
            number = int(global_step if isinstance(global_step, int | np.integer) else sess.run(global_step))
            path = f"{path}-{number:08d}" if self._pad_step_number else f"{path}-{number}"
        sess.run(self.saver_def.save_tensor_name, {self.saver_def.filename_tensor_name: path})
        if write_state:
            self._record(path, latest_filename, meta_graph_suffix)
        if write_meta_graph:
            export_meta_graph(f"{path}.{meta_graph_suffix}", graph=sess.graph, saver_def=self.saver_def)
        return path

    def export_meta_graph(
        self,
        filename: str | os.PathLike[str] | None = None,
        collection_list: Iterable[str] | None = None,
        as_text: bool = False,
        export_scope: str | None = None,
        clear_devices: bool = False,
        clear_extraneous_savers: bool = False,
        strip_default_attrs: bool = False,
        save_debug_info: bool = False,
    ) -> Any:
        """The default graph as a `MetaGraphDef` with this saver; written to a file too, if one is named."""
        return export_meta_graph(
            filename,
            saver_def=self.saver_def,
            collection_list=collection_list,
            as_text=as_text,
            clear_devices=clear_devices,
        )

    def restore(self, sess: Any, save_path: str | os.PathLike[str] | None) -> None:
        """Gives the variables the values of a checkpoint.

        Raises:
            GraphError: there is no such checkpoint.
            NotFoundError: it lacks a variable.
            InvalidArgumentError: a value does not fit its variable.
        """
        self.build()
        if self.saver_def is None:
            return
        if save_path is None:
            raise GraphError("Can't load save_path when it is None.")
        path = os.fspath(save_path)
        if not checkpoint_exists(path):
            raise GraphError(f"The passed save_path is not a valid checkpoint: {path}")
        try:
            sess.run(self.saver_def.restore_op_name, {self.saver_def.filename_tensor_name: path})
        except NotFoundError as error:
            raise NotFoundError(error.node_def, error.op, f"restoring from {path}: {error.message}") from None
        except ShapeError as error:
            raise InvalidArgumentError(
                None, None, f"restoring from {path}: {error}; is it the checkpoint of another graph?"
            ) from None

    def _build(self) -> Any:
        variables = _named(global_variables() if self._var_list is None else self._var_list)
        if not variables:
            if self._allow_empty:
                return None
            raise GraphError("No variables to save")
        graph = get_default_graph()
        with graph.name_scope(self._name or "save"), graph.control_dependencies(None):
            default = constant(self._filename, string, name="filename/input")
            path = node("PlaceholderWithDefault", [default], {"shape": default.shape}, "Const")
            saved = self._save_operation(path, variables)
            with graph.control_dependencies([saved]):
                save_tensor = node("Identity", [path], None, "control_dependency")
            restored = self._restore_operation(path, variables)
        return CLASSES["SaverDef"](
            filename_tensor_name=path.name,
            save_tensor_name=save_tensor.name,
            restore_op_name=restored.name,
            max_to_keep=self._max_to_keep,
            keep_checkpoint_every_n_hours=self._every_seconds / 3600,
            version=2,
        )

    def _save_operation(self, path: Tensor, variables: Sequence[_Saved]) -> Operation:
        with get_default_graph().name_scope("SaveV2"):
            names, parts = _described(variables)
        values = [saved.variable.value() for saved in variables]
        types = tuple(value.dtype for value in values)
        return operation("SaveV2", [path, names, parts, *values], {"dtypes": types}, "SaveV2")

    def _restore_operation(self, path: Tensor, variables: Sequence[_Saved]) -> Operation:
        with get_default_graph().name_scope("RestoreV2"):
            names, parts = _described(variables)
        types = tuple(saved.variable.dtype for saved in variables)
        values = operation("RestoreV2", [path, names, parts], {"dtypes": types}, "RestoreV2").outputs
        assigned = []
        for value, saved in zip(values, variables, strict=True):
            new = reshape(value, saved.variable.shape) if self._reshape else value
            assigned.append(operation("AssignVariableOp", [saved.variable.handle, new]))
        return group(*assigned, name="restore_all")

    def _record(self, path: str, latest_filename: str | None, meta_graph_suffix: str) -> None:
        """Writes the new list of checkpoints, and only then removes the oldest."""
        self._kept = [each for each in self._kept if each[0] != path] + [(path, time.time())]
        old = self._kept[: -self._max_to_keep] if self._max_to_keep else self._kept
        self._kept = self._kept[len(old) :]
        update_checkpoint_state(
            os.path.dirname(path),
            path,
            self.last_checkpoints,
            latest_filename,
            save_relative_paths=self._save_relative_paths,
        )
        for each, written in old if self._max_to_keep else ():
            if written > self._keep_next:
                self._keep_next += self._every_seconds
            else:
                remove_checkpoint(each, meta_graph_suffix=meta_graph_suffix)


def import_meta_graph(
    meta_graph_or_file: Any, clear_devices: bool = False, import_scope: str | None = None, **kwargs: Any
) -> Any:
    """Adds a `MetaGraphDef` to the default graph; gives its saver, or one of its variables if it has none.

    Raises:
        NotFoundError: there is no such file.
        InvalidArgumentError: the message or its graph is broken, or has what does not exist here.
    """
    message, variables = add_meta_graph(meta_graph_or_file, clear_devices, import_scope)
    given = message.saver_def
    if given.restore_op_name:
        saver_def = CLASSES["SaverDef"]()
        saver_def.CopyFrom(given)
        prefix = f"{import_scope}/" if import_scope else ""
        for field in ("filename_tensor_name", "save_tensor_name", "restore_op_name"):
            setattr(saver_def, field, prefix + getattr(given, field))
        hours = given.keep_checkpoint_every_n_hours or _FOREVER_HOURS
        return Saver(saver_def=saver_def, max_to_keep=given.max_to_keep, keep_checkpoint_every_n_hours=hours)
    return Saver([*variables.values()]) if variables else None


class _Saved(NamedTuple):
    """A variable in a checkpoint: under which name, and which part of it; the whole, if empty."""

    name: str
    part: str
    variable: Variable


def _named(var_list: Mapping[str, Any] | Iterable[Any]) -> list[_Saved]:
    """Variables by their names in checkpoints, in the order of the names and of the parts."""
    pairs: list[tuple[str | None, Any]]
    pairs = [*var_list.items()] if isinstance(var_list, Mapping) else [(None, each) for each in var_list]
    found: dict[tuple[str, Variable], _Saved] = {}
    for asked, given in pairs:
        for variable in given if isinstance(given, PartitionedVariable | list | tuple) else [given]:
            if not isinstance(variable, Variable):
                raise TypeError(f"Saver: {asked!r} is {variable!r}, expected a variable")
            info = variable._save_slice_info
            name = asked if asked is not None else variable.op.name if info is None else info.full_name
            found[name, variable] = _Saved(name, "" if info is None else info.spec, variable)
    named = sorted(found.values(), key=lambda saved: saved.name)
    for before, after in pairwise(named):
        if before.name == after.name and (not before.part or not after.part):
            raise GraphError(f"At least two variables have the same name: {after.name}")
    return named


def _described(variables: Sequence[_Saved]) -> tuple[Tensor, Tensor]:
    """The names of variables, and of which part of each."""
    names = constant([saved.name for saved in variables], string, name="tensor_names")
    return names, constant([saved.part for saved in variables], string, name="shape_and_slices")
