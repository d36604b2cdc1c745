"""Types of TensorFlow's operations that call functions, which programs have as Python's; for `raw_ops` alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from xlalite.framework.graph.tensor import Tensor
from xlalite.ops.functions.composed_operations import Composed
from xlalite.ops.functions.control_flow import cond as if_else, switch_case, while_loop
from xlalite.ops.helpers.constant import convert_to_tensor

# The parameters have the names that TensorFlow gives the inputs.


def _call(*args: Any, f: Callable[..., Any], name: str | None = None, **ignored: Any) -> Sequence[Tensor]:
    return _listed(f(*args))


def _case(
    branch_index: Any, *input: Any, branches: Sequence[Callable[..., Any]], name: str = "Case", **ignored: Any
) -> Sequence[Tensor]:
    return _listed(switch_case(branch_index, [partial(each, *input) for each in branches], name=name))


def _if(
    cond: Any,
    *inputs: Any,
    then_branch: Callable[..., Any],
    else_branch: Callable[..., Any],
    name: str | None = None,
    **ignored: Any,
) -> Sequence[Tensor]:
    return _listed(if_else(cond, partial(then_branch, *inputs), partial(else_branch, *inputs), name=name))


def _stateless_if(cond: Any, *input: Any, **attrs: Any) -> Sequence[Tensor]:
    return _if(cond, *input, **attrs)


def _while(
    *input: Any, cond: Callable[..., Any], body: Callable[..., Any], name: str | None = None, **ignored: Any
) -> Sequence[Tensor]:
    return _listed(while_loop(cond, body, [*input], name=name))


def _listed(results: Any) -> list[Tensor]:
    return [*map(convert_to_tensor, results if isinstance(results, list | tuple) else [results])]


CALLING: Final[Mapping[str, Composed]] = {
    **dict.fromkeys(("Case", "StatelessCase"), _case),
    **dict.fromkeys(("PartitionedCall", "StatefulPartitionedCall"), _call),
    **dict.fromkeys(("StatelessWhile", "XlaWhile"), _while),
    "StatelessIf": _stateless_if,
    "XlaIf": _if,
}
"""What calls the functions of each type; what a function gives may stand alone or in a list."""
