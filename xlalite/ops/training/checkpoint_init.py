"""First values of variables out of a checkpoint: `train.init_from_checkpoint`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from xlalite.files.checkpoint_state import latest_checkpoint, load_checkpoint
from xlalite.framework.graph.errors import GraphError
from xlalite.hlo.errors import ShapeError
from xlalite.ops.helpers.constant import constant
from xlalite.ops.helpers.node import operation
from xlalite.ops.training.variable import Variable, global_variables


def init_from_checkpoint(ckpt_dir_or_file: str | os.PathLike[str], assignment_map: Mapping[str, Any]) -> None:
    """Makes the initializers of variables read a checkpoint.

    Args:
        ckpt_dir_or_file: The checkpoint, or a folder with a latest one.
        assignment_map: Names in the checkpoint to variables or their names; or scopes to scopes, each with a `/` at its
            end, for all variables of a scope.

    Raises:
        GraphError: a variable or a value does not exist.
        ShapeError: a value does not fit its variable.
    """
    path = os.fspath(ckpt_dir_or_file)
    path = (latest_checkpoint(path) or path) if os.path.isdir(path) else path
    shapes = load_checkpoint(path).get_variable_to_shape_map()
    for name, variable in _pairs(assignment_map):
        if name not in shapes:
            raise GraphError(f"{name!r} for variable {variable.op.name!r} is not in the checkpoint {path}")
        if not variable.shape.is_compatible_with(shapes[name]):
            raise ShapeError(
                f"variable {variable.op.name!r} has shape {variable.shape}; {name!r} of the checkpoint {path} has "
                f"{tuple(shapes[name])}"
            )
        graph = variable.graph
        with graph.as_default(), graph.control_dependencies(None), graph.name_scope("checkpoint_initializer"):
            inputs = [constant(path), constant([name]), constant([""])]
            (value,) = operation("RestoreV2", inputs, {"dtypes": (variable.dtype,)}).outputs
            value.set_shape(shapes[name])
            variable.begin_with(value)


def _pairs(assignment_map: Mapping[str, Any]) -> list[tuple[str, Variable]]:
    """Names in the checkpoint with the variables that they are for."""
    by_name = {variable.op.name: variable for variable in global_variables()}
    found: list[tuple[str, Variable]] = []
    for name, target in assignment_map.items():
        if isinstance(target, Variable):
            found.append((name, target))
        elif target.endswith("/"):
            scope, prefix = target.removeprefix("/"), name.removeprefix("/")
            inside = [(prefix + each.removeprefix(scope), v) for each, v in by_name.items() if each.startswith(scope)]
            if not inside:
                raise GraphError(f"the graph has no variables in the scope {target!r}")
            found += inside
        elif target.removesuffix(":0") in by_name:
            found.append((name, by_name[target.removesuffix(":0")]))
        else:
            raise GraphError(f"the graph has no variable {target!r}")
    return found
