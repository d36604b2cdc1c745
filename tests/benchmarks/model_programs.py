"""Networks as workloads: programs of jax, forward and one step of training, which jax lowers for us.

Without jax there are none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from benchmarks.harness import Contest, Workload, contest, has
from benchmarks.programs import signed

import xlalite as xl

Shape = tuple[int, ...]
Network = Callable[[Any, Any, Iterator[Any]], Any]
"""(jax or what takes its place, input, parameters in turn) -> output."""


def model_workloads(
    models: Sequence[tuple[str, Network, Shape]],
    in_torch: Callable[..., Any] | None = None,
    kinds: Sequence[bool] = (False, True),
) -> list[Workload]:
    """Each network forward, and a step of its training.

    Args:
        models: Names, networks and sizes of the input.
        in_torch: Runs (torch, network, whether it trains, input, other arrays).
        kinds: Whether to train it, or both.
    """
    if not has("jax"):
        return []
    return [
        Workload(
            f"{name}, {'training step' if trains else 'forward'} {list(shape)}",
            partial(_model, build, shape, trains, in_torch),
        )
        for name, build, shape in models
        for trains in kinds
    ]


def _model(network: Network, shape: Shape, trains: bool, in_torch: Callable[..., Any] | None) -> Contest:
    import jax

    parameters, last = _parameters(jax, network, shape)
    (x,), (wanted,) = signed(shape), signed(last, seed=2)

    def forward(*arrays: Any) -> Any:
        return network(jax, arrays[0], iter(arrays[1:]))

    def step(x: Any, wanted: Any, *arrays: Any) -> Any:
        def loss(arrays: Any) -> Any:
            return jax.numpy.mean((network(jax, x, iter(arrays)) - wanted) ** 2)

        value, gradients = jax.value_and_grad(loss)(arrays)
        return value, *(a - 0.01 * g for a, g in zip(arrays, gradients, strict=True))

    function, arguments = (step, [x, wanted, *parameters]) if trains else (forward, [x, *parameters])
    executable = xl.compile(xl.hlo.parse(jax.jit(function, keep_unused=True).lower(*arguments).as_text()))
    torch = None if in_torch is None else lambda torch: partial(in_torch, torch, network, trains)
    return contest(executable, arguments, executable, jax=lambda _: function, torch=torch, tolerance=1e-2)


def _parameters(jax: Any, network: Network, shape: Shape) -> tuple[list[np.ndarray], Shape]:
    """Arrays of the sizes that a network asks for, and the sizes of its output."""
    shapes, output = asked_shapes(jax, network, shape)
    found = signed(*shapes, seed=1)
    return [a * np.float32(max(1, a.size // a.shape[-1]) ** -0.5) for a in found], output


def asked_shapes(jax: Any, network: Network, shape: Shape) -> tuple[list[Shape], Shape]:
    """The sizes of the parameters that a network asks for, and of its output."""
    asked = _Asked()
    output = jax.eval_shape(lambda x: network(jax, x, asked), jax.ShapeDtypeStruct(shape, np.float32))
    return asked.shapes, output.shape


class _Asked:
    """Parameters that do not exist yet: notes which sizes are asked for."""

    def __init__(self) -> None:
        self.shapes: list[Shape] = []

    def take(self, shape: Shape) -> np.ndarray:
        self.shapes.append(shape)
        return np.zeros(shape, np.float32)


def take(parameters: Any, *shape: int) -> Any:
    """The next parameter, of these sizes."""
    return parameters.take(shape) if isinstance(parameters, _Asked) else next(parameters)
