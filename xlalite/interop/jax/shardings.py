"""How a program whose devices have parts of arrays takes and gives them: jax asks where it has not said so itself."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from xlalite.hlo.proto.message import ProtoMessage
from xlalite.hlo.stablehlo.reading.syntax import Opaque, Operation, Program

_SHARDING = re.compile(r"<@(\w+), \[([^\]]*)\][^>]*>")
_MESH = re.compile(r"#sdy\.mesh<\[([^\]]*)\]>")
_DIMENSION = re.compile(r"\{([^}]*)\}")


def put_shardings(program: Program, module: ProtoMessage) -> None:
    """Puts those of the operation that is all of the entry into a module, unless one is of a kind not known here."""
    (operation,) = program.functions["main"].body.operations
    given, made = (_shardings(program, operation, name) for name in ("in_shardings", "out_shardings"))
    if len(given) == len(operation.operands) and len(made) == len(operation.results):
        module.put_all("spmd_parameters_shardings", given)
        whole = module.open("spmd_output_sharding").put_word("type", "TUPLE")
        whole.put_all("tuple_shardings", made)


def _shardings(program: Program, operation: Operation, name: str) -> list[ProtoMessage]:
    value = operation.attributes.get(name)
    texts = _SHARDING.finditer(value.text) if isinstance(value, Opaque) else ()
    found = [_sharding(_DIMENSION.findall(text[2]), program.meshes.get(text[1], "")) for text in texts]
    return [each for each in found if each is not None]


def _sharding(dimensions: Sequence[str], mesh: str) -> ProtoMessage | None:
    """The message for the axes that cut each dimension; None for parts of axes, and meshes of devices out of order."""
    named = _MESH.fullmatch(mesh)
    if named is None or any(":" in each for each in dimensions):
        return None
    sizes = {axis: int(size) for axis, size in re.findall(r'"([^"]+)"=(\d+)', named[1])}
    cuts = [re.findall(r'"([^"]+)"', each) for each in dimensions]
    order = [axis for axes in cuts for axis in axes]
    if not set(order) <= set(sizes):
        return None
    message = ProtoMessage("OpSharding")
    if not order:
        return message.put_word("type", "REPLICATED")
    tiles = [math.prod(sizes[axis] for axis in axes) for axes in cuts]
    rest = [axis for axis in sizes if axis not in order]
    copies = math.prod(sizes[axis] for axis in rest)
    if copies > 1:
        tiles.append(copies)
        message.put("replicate_on_last_tile_dim", True)
    message.put_word("type", "OTHER").put_all("tile_assignment_dimensions", tiles)
    message.put_all("iota_reshape_dims", sizes.values())
    return message.put_all("iota_transpose_perm", [list(sizes).index(axis) for axis in [*order, *rest]])
