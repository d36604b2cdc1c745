"""The file `checkpoint` of a folder: which checkpoints there are, and which is the latest."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from xlalite.files.checkpoints import CheckpointReader, checkpoint_exists, delete_checkpoint, index_path
from xlalite.files.replacing import write_whole
from xlalite.framework.graph.errors import NotFoundError
from xlalite.hlo.errors import ParseError
from xlalite.messages.classes import CLASSES

_STATE_FILE = "checkpoint"

PathLike = str | os.PathLike[str]


def update_checkpoint_state(
    save_dir: PathLike,
    model_checkpoint_path: str,
    all_model_checkpoint_paths: Sequence[str] | None = None,
    latest_filename: str | None = None,
    all_model_checkpoint_timestamps: Sequence[float] | None = None,
    last_preserved_timestamp: float | None = None,
    save_relative_paths: bool = False,
) -> None:
    """Writes which checkpoints there are; paths of a relative folder are relative to it."""
    listed = list(all_model_checkpoint_paths or ())
    if not listed or listed[-1] != model_checkpoint_path:
        listed.append(model_checkpoint_path)
    relative = save_relative_paths or not os.path.isabs(save_dir)
    shown = [
        os.path.relpath(path, save_dir) if relative and (save_relative_paths or not os.path.isabs(path)) else path
        for path in listed
    ]
    state = CLASSES["CheckpointState"](
        model_checkpoint_path=shown[-1],
        all_model_checkpoint_paths=shown,
        all_model_checkpoint_timestamps=all_model_checkpoint_timestamps,
        last_preserved_timestamp=last_preserved_timestamp,
    )
    write_whole(os.path.join(save_dir, latest_filename or _STATE_FILE), repr(state).encode())


def get_checkpoint_state(checkpoint_dir: PathLike, latest_filename: str | None = None) -> Any:
    """The `CheckpointState` of a folder, with whole paths; None when there is none that can be read."""
    path = Path(checkpoint_dir, latest_filename or _STATE_FILE)
    try:
        state = CLASSES["CheckpointState"].from_text(path.read_text())
    except (OSError, ParseError, UnicodeDecodeError):
        return None
    if not state.model_checkpoint_path:
        return None
    state.model_checkpoint_path = os.path.join(checkpoint_dir, state.model_checkpoint_path)
    for number, each in enumerate(state.all_model_checkpoint_paths):
        state.all_model_checkpoint_paths[number] = os.path.join(checkpoint_dir, each)
    return state


def latest_checkpoint(checkpoint_dir: PathLike, latest_filename: str | None = None) -> str | None:
    """The latest checkpoint of a folder, if it is there."""
    state = get_checkpoint_state(checkpoint_dir, latest_filename)
    if state is None or not checkpoint_exists(state.model_checkpoint_path):
        return None
    return str(state.model_checkpoint_path)


def load_checkpoint(ckpt_dir_or_file: PathLike) -> CheckpointReader:
    """A reader of a checkpoint, or of the latest one of a folder.

    Raises:
        NotFoundError: there is none.
    """
    path = os.fspath(ckpt_dir_or_file)
    if os.path.isdir(path):
        latest = latest_checkpoint(path)
        if latest is None:
            raise NotFoundError(None, None, f"Couldn't find 'checkpoint' file or checkpoints in given directory {path}")
        path = latest
    return CheckpointReader(path)


def list_variables(ckpt_dir_or_file: PathLike) -> list[tuple[str, list[int]]]:
    """Names and sizes of all variables of a checkpoint, by name."""
    return sorted(load_checkpoint(ckpt_dir_or_file).get_variable_to_shape_map().items())


def load_variable(ckpt_dir_or_file: PathLike, name: str) -> npt.NDArray[Any]:
    """The value of a variable of a checkpoint."""
    return np.asarray(load_checkpoint(ckpt_dir_or_file).get_tensor(name.removesuffix(":0")))


def get_checkpoint_mtimes(checkpoint_prefixes: Iterable[str]) -> list[float]:
    """When each checkpoint that is there was written."""
    return [os.path.getmtime(index_path(prefix)) for prefix in checkpoint_prefixes if checkpoint_exists(prefix)]


def remove_checkpoint(
    checkpoint_prefix: str, checkpoint_format_version: Any = None, meta_graph_suffix: str = "meta"
) -> None:
    """Removes a checkpoint and the graph beside it."""
    delete_checkpoint(checkpoint_prefix)
    Path(f"{checkpoint_prefix}.{meta_graph_suffix}").unlink(missing_ok=True)
