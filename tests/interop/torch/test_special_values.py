"""What rules do at the edges of their operations: NaN, infinities, empty tensors, numbers and indices out of range."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]

from xlalite.interop.torch import backend  # noqa: E402
from xlalite.interop.torch.backend import observe  # noqa: E402

_SPECIAL = (math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, -2.5, 1e-40, 3e38)
_TABLE = torch.arange(20.0).reshape(4, 5)
_FEW = torch.full((3000,), 0.1, dtype=torch.bfloat16)
_INF = torch.full((3, 2), math.inf)


def special(dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.tensor(_SPECIAL, dtype=dtype)


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    torch._dynamo.reset()
    return torch.compile(function, backend=backend, dynamic=False)


SAME: dict[str, tuple[Any, ...]] = {
    "sign": (torch.sign, special()),
    "sign of bf16": (torch.sgn, special(torch.bfloat16)),
    "sign of what has none": (torch.sign, torch.tensor([0, 3, 255], dtype=torch.uint8)),
    "sign of truth values": (torch.sign, torch.tensor([True, False])),
    "complex infinities": (torch.isinf, torch.complex(special(), special().flip(0))),
    "a quotient by a number is truncated before it is rounded": (
        lambda x: torch.div(x, 0.3, rounding_mode="trunc"),
        torch.arange(-20, 20, 0.125).to(torch.bfloat16),
    ),
    "a quotient by a tensor is rounded before it is truncated": (
        lambda x, y: torch.div(x, y, rounding_mode="trunc"),
        *(torch.arange(-20, 20, 0.125).to(torch.bfloat16), torch.full((320,), 0.3, dtype=torch.bfloat16)),
    ),
    "no multiple of a product": (
        lambda b, x, y: torch.addmm(b, x, y, alpha=0),
        *(torch.ones(4), _INF, torch.ones(2, 4)),
    ),
    "many small numbers at one place": (
        lambda x, i, s: torch.scatter_add(x, 0, i, s),
        *(_FEW[:1], torch.zeros(3000, dtype=torch.int64), _FEW),
    ),
    "many small numbers in one row": (
        lambda x, i, s: torch.scatter_reduce(x, 0, i, s, "mean"),
        *(_FEW[:1], torch.zeros(3000, dtype=torch.int64), _FEW),
    ),
    "indices from the end": (lambda x, i: (x[i], x[:, i], x.index_fill(0, i, 2.0)), _TABLE, torch.tensor([-1, -4])),
}
AT_PLACES: dict[str, Callable[..., Any]] = {
    "embedding": lambda x, i: torch.nn.functional.embedding(i, x),
    "index_select": lambda x, i: x.index_select(1, i),
    "index": lambda x, i: x[:, i],
    "index_put": lambda x, i: x.index_put((i,), torch.tensor(1.0)),
    "index_add": lambda x, i: x.index_add(0, i, torch.ones(2, 5)),
    "index_copy": lambda x, i: x.index_copy(0, i, torch.ones(2, 5)),
    "index_fill": lambda x, i: x.index_fill(1, i, 2.0),
    "gather": lambda x, i: x.gather(0, i[:, None].expand(2, 5)),
    "scatter": lambda x, i: x.scatter(0, i[:, None].expand(2, 5), 1.0),
    "scatter_add": lambda x, i: x.scatter_add(0, i[:, None].expand(2, 5), torch.ones(2, 5)),
    "scatter_reduce": lambda x, i: x.scatter_reduce(0, i[:, None].expand(2, 5), torch.ones(2, 5), "amax"),
    "nll_loss": lambda x, i: torch.nn.functional.nll_loss(x[:2], i),
}
REFUSED: dict[str, tuple[Any, ...]] = {
    **{
        f"{name} {number}": (function, _TABLE, torch.tensor([0, number]))
        for name, function in AT_PLACES.items()
        for number in (7, -9)
    },
    "too little for a mask": (torch.masked_scatter, _TABLE, _TABLE > 3, torch.ones(3)),
    "nothing for a mask": (torch.masked_scatter, _TABLE, _TABLE > 3, torch.ones(0)),
    "whole numbers to negative powers": (lambda x: x**-1, torch.tensor([1, 2])),
    "a number that a type does not hold": (lambda x: x + torch.full((2,), 300, dtype=torch.int8), torch.ones(2)),
    "the largest of nothing": (lambda x: x.amax(1), torch.ones(3, 0)),
    "the smallest of nothing": (lambda x: x.min(), torch.ones(0)),
    "where the largest of nothing is": (lambda x: x.max(1)[1], torch.ones(3, 0)),
}


@pytest.mark.parametrize("name", SAME)
def test_edges_are_those_of_eager(name: str) -> None:
    function, *given = SAME[name]
    programs: list[Any] = []
    end = observe(programs.append)
    try:
        found = compiled(function)(*given)
    finally:
        end()
    expected = function(*given)
    tolerance = {"rtol": 0.01, "atol": 0.0} if "many" in name else {"rtol": 0.0, "atol": 0.0}
    torch.testing.assert_close(found, expected, equal_nan=True, **tolerance)
    assert not [decision for program in programs for decision in program.decisions]


@pytest.mark.parametrize("name", REFUSED)
def test_what_eager_refuses_is_refused(name: str) -> None:
    function, *given = REFUSED[name]
    for each in (function, compiled(function)):
        with pytest.raises((RuntimeError, IndexError)):
            each(*given)


def test_indices_are_checked_at_every_call() -> None:
    function = compiled(lambda x, i: x[i])
    for _ in range(2):
        assert torch.equal(function(_TABLE, torch.tensor([3, -4])), _TABLE[[3, 0]])
        with pytest.raises(IndexError, match="out of bounds for a dimension of size 4"):
            function(_TABLE, torch.tensor([3, 4]))
