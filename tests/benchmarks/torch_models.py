"""Networks of convolutions run by torch: what they call of jax, in torch's words, and a step of training."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any


def in_torch(torch: Any, network: Callable[[Any, Any, Iterator[Any]], Any], trains: bool, x: Any, *arrays: Any) -> Any:
    """The output of the network, or of a step: the loss and the new parameters."""
    place = SimpleNamespace(
        nn=torch.nn.functional,
        numpy=SimpleNamespace(
            tanh=torch.tanh, clip=torch.clip, concatenate=torch.cat, var=partial(torch.var, correction=0)
        ),
        lax=SimpleNamespace(
            rsqrt=torch.rsqrt,
            max=None,
            reduce_window=partial(_pool, torch),
            conv_general_dilated=partial(_layer, torch),
        ),
    )
    if not trains:
        with torch.no_grad():
            return network(place, x, iter(arrays))
    wanted, *given = arrays
    parameters = [one.detach().requires_grad_() for one in given]
    loss = ((network(place, x, iter(parameters)) - wanted) ** 2).mean()
    gradients = torch.autograd.grad(loss, parameters, materialize_grads=True, allow_unused=True)
    return loss.detach(), *((a - 0.01 * g).detach() for a, g in zip(parameters, gradients, strict=True))


def _pool(torch: Any, x: Any, start: float, maximum: None, size: Sequence[int], step: Sequence[int], pads: Any) -> Any:
    around = 0 if pads == "VALID" else pads[1][0]
    return torch.nn.functional.max_pool2d(x.permute(0, 3, 1, 2), size[1], step[1], around).permute(0, 2, 3, 1)


def _layer(
    torch: Any,
    x: Any,
    kernel: Any,
    steps: Sequence[int],
    pads: Sequence[tuple[int, int]],
    holes: Sequence[int],
    apart: Sequence[int],
    dimension_numbers: tuple[str, str, str],
    feature_group_count: int,
) -> Any:
    """Channels last; with holes, the transposed convolution."""
    space, (low, high), is_holey = len(steps), pads[0], holes[0] > 1
    x, kernel = x.permute(0, space + 1, *range(1, space + 1)), kernel.permute(space + 1, space, *range(space))
    padding = low
    if is_holey:
        padding = kernel.shape[2] - 1 - low
        kernel, steps = kernel.flip(*range(2, space + 2)).transpose(0, 1), holes
    elif low != high:
        x, padding = torch.nn.functional.pad(x, [low, high] * space), 0
    options = (*map(list, (steps, (padding,) * space, apart)), is_holey, [0] * space, feature_group_count)
    return torch.convolution(x, kernel, None, *options).permute(0, *range(2, space + 2), 1)
