"""Turns functions on arrays into evaluators of elementwise operations.

Such an evaluator depends on element types and operand values only, never on `instruction.shape.dims`. That is a
contract: a computation on scalars made of elementwise operations can then be evaluated for whole arrays at once
(`array_function` in `scalar_function.py`). Whoever calls it silences NumPy's warnings: the interpreter does so once for
all operations of a program.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from xlalite.hlo.errors import EvaluationError
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.op import Caller, Evaluator
from xlalite.hlo.numerics.rounding import AnyArray, ArrayFunction
from xlalite.hlo.ops.rules.elementwise_rules import common_dtype
from xlalite.hlo.types.dtype import DType, Kind
from xlalite.hlo.types.literal import Value


def elementwise(
    *,
    pred: ArrayFunction | None = None,
    integer: ArrayFunction | None = None,
    real: ArrayFunction | None = None,
    complex_: ArrayFunction | None = None,
) -> Evaluator:
    """An evaluator that picks a function by the family of the first operand's element type."""
    by_kind = {
        Kind.PRED: pred,
        Kind.SIGNED: integer,
        Kind.UNSIGNED: integer,
        Kind.FLOAT: real,
        Kind.COMPLEX: complex_,
    }

    def evaluate(instruction: HloInstruction, operands: Sequence[Value], call: Caller) -> Value:
        arrays = _in_one_type(arrays_of(operands))
        function = by_kind[DType.from_numpy(arrays[0].dtype).kind]
        if function is None:
            raise EvaluationError(f"{instruction.opcode} has no value for element type {arrays[0].dtype}")
        return np.asarray(function(*arrays))

    return evaluate


def _in_one_type(arrays: tuple[AnyArray, ...]) -> tuple[AnyArray, ...]:
    """The operands in the wider of their types, where a rule lets types differ."""
    if len(arrays) != 2 or arrays[0].dtype is arrays[1].dtype or arrays[0].dtype == arrays[1].dtype:
        return arrays
    common = common_dtype(*(DType.from_numpy(array.dtype) for array in arrays))
    return arrays if common is None else tuple(array.astype(common.numpy) for array in arrays)


def identity(instruction: HloInstruction, operands: Sequence[Value], call: Caller) -> Value:
    """The evaluator of operations that give their first operand."""
    return operands[0]


def arrays_of(operands: Sequence[Value]) -> tuple[AnyArray, ...]:
    """The operands, which must all be arrays.

    Raises:
        EvaluationError: One is a tuple or a token.
    """
    for operand in operands:
        if not isinstance(operand, np.ndarray):
            raise EvaluationError(f"expected an array, found a {type(operand).__name__}")
    return tuple(operands)  # type: ignore[arg-type]
