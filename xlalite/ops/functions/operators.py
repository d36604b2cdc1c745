"""What Python's operators mean on tensors and variables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xlalite.framework.graph.operators import define_operator
from xlalite.framework.graph.tensor import Tensor
from xlalite.ops.functions import math
from xlalite.ops.functions.indexing import assign_slice, index_tensor
from xlalite.ops.helpers.constant import convert_to_tensor
from xlalite.ops.helpers.indexed_slices import dense
from xlalite.ops.helpers.node import node
from xlalite.ops.helpers.promotion import promote


def _binary(op_type: str, name: str) -> Callable[[Any, Any], Tensor]:
    return lambda x, y: node(op_type, promote(x, y), None, name)


def _logical(for_bool: str, for_integers: str, name: str) -> Callable[[Any, Any], Tensor]:
    def operator(x: Any, y: Any) -> Tensor:
        operands = promote(x, y)
        return node(for_bool if operands[0].dtype.is_bool else for_integers, operands, None, name)

    return operator


def _invert(x: Any) -> Tensor:
    tensor = convert_to_tensor(x)
    return node("LogicalNot" if tensor.dtype.is_bool else "Invert", [tensor])


define_operator("add", _binary("AddV2", "add"))
define_operator("sub", _binary("Sub", "sub"))
define_operator("mul", _binary("Mul", "mul"))
define_operator("truediv", math.truediv)
define_operator("floordiv", _binary("FloorDiv", "floordiv"))
define_operator("mod", _binary("FloorMod", "mod"))
define_operator("pow", _binary("Pow", "pow"))
define_operator("matmul", lambda x, y: math.matmul(x, y, name="matmul"))
define_operator("and", _logical("LogicalAnd", "BitwiseAnd", "and"))
define_operator("or", _logical("LogicalOr", "BitwiseOr", "or"))
define_operator("xor", _logical("NotEqual", "BitwiseXor", "xor"))
define_operator("less", math.less)
define_operator("less_equal", math.less_equal)
define_operator("greater", math.greater)
define_operator("greater_equal", math.greater_equal)
define_operator("neg", math.negative)
define_operator("abs", math.abs)
define_operator("invert", _invert)
define_operator("dense", dense)
define_operator("getitem", lambda x, key: index_tensor(convert_to_tensor(x), key))
define_operator("assign_slice", assign_slice)
