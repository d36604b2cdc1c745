"""Rules of operations with attributes: compiled, nothing of them left to eager, and equal to eager with gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]

from torch.nn import functional as F  # noqa: E402

from xlalite.interop.torch import backend  # noqa: E402
from xlalite.interop.torch.backend import observe  # noqa: E402


def x(*sizes: int) -> Any:
    return torch.randn(sizes, generator=torch.Generator().manual_seed(sum(sizes)), requires_grad=True)


def number(*values: Any) -> Any:
    return torch.tensor(values)


def places(most: int, *sizes: int) -> Any:
    return torch.randint(0, most, sizes, generator=torch.Generator().manual_seed(most))


_MASK = places(2, 4, 9) > 0
_UP = {
    f"{mode} {size}": (lambda t, mode=mode, size=size: F.interpolate(t, **size, mode=mode), x(2, 3, 5, 4))
    for mode in ("nearest", "nearest-exact", "bilinear", "bicubic")
    for size in ({"size": (7, 11)}, {"scale_factor": 1.7}, {"size": (3, 2)})
}
CASES: dict[str, tuple[Any, ...]] = {
    "conv2d": (
        lambda t, w, b: F.conv2d(t, w, b, stride=2, padding=1, dilation=(1, 2)),
        x(2, 4, 9, 10),
        x(6, 4, 3, 2),
        x(6),
    ),
    "conv2d of groups": (lambda t, w: F.conv2d(t, w, groups=2), x(2, 4, 9, 10), x(6, 2, 3, 2)),
    "conv1d": (lambda t, w: F.conv1d(t, w, padding=2), x(2, 4, 9), x(6, 4, 3)),
    "conv3d": (lambda t, w: F.conv3d(t, w, padding=1, stride=2), x(2, 4, 5, 6, 7), x(6, 4, 3, 2, 3)),
    "conv of no images": (lambda t, w: F.conv2d(t, w), x(0, 4, 9, 10), x(6, 4, 3, 2)),
    "transposed conv": (
        lambda t, w, b: F.conv_transpose2d(t, w, b, stride=2, padding=1, output_padding=1, groups=2, dilation=2),
        *(x(2, 4, 5, 6), x(4, 3, 3, 2), x(6)),
    ),
    "average of what is there": (
        lambda t: F.avg_pool2d(t, 3, 2, 1, ceil_mode=True, count_include_pad=False),
        x(2, 3, 8, 9),
    ),
    "average with padding": (lambda t: F.avg_pool2d(t, 3, 2, 1, ceil_mode=True), x(2, 3, 8, 9)),
    "average over a number": (lambda t: F.avg_pool2d(t, (3, 2), divisor_override=5), x(3, 8, 9)),
    "average in three dimensions": (lambda t: F.avg_pool3d(t, 2, 1, 1), x(2, 3, 4, 3, 5)),
    "maximum": (lambda t: F.max_pool2d(t, 3, 2, 1), x(2, 3, 8, 9)),
    "maximum, dilated": (
        lambda t: F.max_pool2d(t, 3, 2, 1, dilation=2, ceil_mode=True, return_indices=True),
        x(2, 3, 18, 19),
    ),
    "maximum along one dimension": (lambda t: F.max_pool1d(t, 3, 2, 1), x(2, 3, 8)),
    "averages of parts": (lambda t: F.adaptive_avg_pool2d(t, (3, 4)), x(2, 3, 8, 9)),
    "averages of all": (lambda t: F.adaptive_avg_pool2d(t, 1), x(2, 3, 8, 9)),
    "averages of halves": (lambda t: F.adaptive_avg_pool2d(t, (4, 3)), x(2, 3, 8, 9)),
    "embedding": (lambda w, i: F.embedding(i, w), x(10, 4), places(10, 3, 5)),
    "embedding by frequency": (
        lambda w, i: F.embedding(i, w, padding_idx=2, scale_grad_by_freq=True),
        *(x(10, 4), places(4, 3, 5)),
    ),
    "gather": (lambda t, i: torch.gather(t, 1, i), x(4, 5), places(5, 2, 6)),
    "scatter_add": (lambda t, i, s: torch.scatter_add(t, 1, i, s), x(4, 5), places(5, 3, 6), x(3, 6)),
    "scatter_reduce": (
        lambda t, i, s: torch.scatter_reduce(t, 1, i, s, "mean", include_self=False),
        *(x(4, 5).detach(), places(3, 2, 5), x(2, 5).detach()),
    ),
    "index behind each other": (lambda t, i, j: t[:, i, j], x(4, 5, 6), number([0, 1], [2, -1]), number(3, -2)),
    "index apart": (lambda t, i, j: t[i, :, j], x(4, 5, 6), number([0, 1], [2, -1]), number(3, -2)),
    "index_put": (lambda t, i, v: t.index_put((i,), v, accumulate=True), x(4, 5), number(0, 1, 1), x(3, 5)),
    "mask": (lambda t, m: t.masked_fill(m, 2.0), x(4, 9), _MASK),
    "sort": (lambda t: torch.sort(t, 1, descending=True)[0], x(4, 50)),
    "topk": (lambda t: torch.topk(t, 3, 0)[0], x(14, 5)),
    "cumsum": (lambda t: torch.cumsum(t, 1), x(4, 50)),
    "cumprod": (lambda t: torch.cumprod(t, 0), x(4, 5)),
    "cummax": (lambda t: torch.cummax(t, 1), x(4, 50)),
    "cummin": (lambda t: torch.cummin(t, 0), x(4, 50)),
    "logcumsumexp": (lambda t: torch.logcumsumexp(t, 1), x(4, 50)),
    "pad": (lambda t: F.pad(t, (1, -2, 3, 0), value=2.0), x(4, 5, 6)),
    "mirror": (lambda t: F.pad(t, (1, 2, 3, 2), mode="reflect"), x(2, 4, 5, 6)),
    "replicate": (lambda t: F.pad(t, (1, 2, 3, 2), mode="replicate"), x(2, 4, 5, 6)),
    **_UP,
    "aligned corners": (
        lambda t: F.interpolate(t, size=(7, 11), mode="bilinear", align_corners=True),
        x(2, 3, 5, 4),
    ),
    "batch norm": (
        lambda t, w, b, m, v: F.batch_norm(t, m, v, w, b, True),
        *(x(4, 3, 5, 5), x(3), x(3), torch.zeros(3), torch.ones(3)),
    ),
    "batch norm, running": (
        lambda t, w, b, m, v: F.batch_norm(t, m, v, w, b, False),
        *(x(4, 3, 5, 5), x(3), x(3), torch.zeros(3), torch.full((3,), 2.0)),
    ),
    "layer norm": (lambda t, w, b: F.layer_norm(t, (5, 6), w, b), x(4, 5, 6), x(5, 6), x(5, 6)),
    "group norm": (lambda t, w, b: F.group_norm(t, 2, w, b), x(4, 6, 5, 6), x(6), x(6)),
    "rms norm": (lambda t, w: F.rms_norm(t, (6,), w), x(4, 5, 6), x(6)),
    "real fft": (lambda t: torch.fft.irfft2(torch.fft.rfft2(t), s=(5, 7)), x(4, 5, 7)),
    "inverse fft": (lambda t: torch.view_as_real(torch.fft.ifft(t, dim=1, norm="ortho").resolve_conj()), x(4, 5, 7)),
    "fft": (lambda t: torch.view_as_real(torch.fft.fftn(t, dim=(0, 2), norm="ortho")), x(4, 5, 6)),
    "numbers to be conjugated": (lambda t: torch.view_as_real(torch.view_as_complex(t).conj() * 2j), x(3, 2)),
    "diagonal_scatter": (lambda t, s: torch.diagonal_scatter(t, s, -1, 1, 0), x(4, 5, 7), x(7, 4)),
    "diagonal": (lambda t: torch.diagonal(t, 1, 0, 2) * 1.0, x(4, 5, 7)),
    "unfold": (lambda t: t.unfold(1, 3, 2) * 1.0, x(4, 9)),
    "slice_scatter": (lambda t, s: torch.slice_scatter(t, s, 1, 1, 6, 2), x(4, 9), x(4, 3)),
    "select_scatter": (lambda t, s: torch.select_scatter(t, s, 0, -1), x(4, 9), x(9)),
    "masked_scatter": (lambda t, m, s: torch.masked_scatter(t, m, s), x(4, 9), _MASK, x(40).detach()),
    "index_add": (lambda t, i, s: torch.index_add(t, 1, i, s, alpha=2), x(4, 5), number(0, 3, 3), x(4, 3)),
    "index_copy": (lambda t, i, s: torch.index_copy(t, 1, i, s), x(4, 5), number(0, 3), x(4, 2)),
    "index_fill": (lambda t, i: torch.index_fill(t, 1, i, 2.5), x(4, 5), number(0, 3)),
}


@pytest.mark.parametrize("name", CASES)
def test_a_rule_does_what_eager_does(name: str) -> None:
    function, *given = CASES[name]
    torch._dynamo.reset()
    programs: list[Any] = []
    end = observe(programs.append)
    try:
        found = _with_gradients(torch.compile(function, backend=backend, dynamic=False), given)
    finally:
        end()
    for one, expected in zip(found, _with_gradients(function, given), strict=True):
        torch.testing.assert_close(one, expected, rtol=1e-4, atol=1e-5)
    left = {decision.subject[1] for program in programs for decision in program.decisions}
    assert not left


def _with_gradients(function: Callable[..., Any], given: list[Any]) -> list[Any]:
    own = [each.detach().clone().requires_grad_(each.requires_grad) for each in given]
    made = function(*own)
    results = list(made) if isinstance(made, tuple) else [made]
    smooth = [each for each in results if each.requires_grad]
    wanted = [each for each in own if each.requires_grad]
    if not smooth:
        return results
    seeds = [torch.linspace(0.5, 1.5, each.numel()).reshape(each.shape) for each in smooth]
    return [*results, *torch.autograd.grad(smooth, wanted, seeds, allow_unused=True)]
