"""Points, small matrices and pixels: arrays whose last dimensions have a few elements."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from benchmarks.harness import Contest, Workload, workload
from benchmarks.programs import floats, function_contest, signed

_TOLERANCE = 1e-5


def workloads() -> list[Workload]:
    """All of them."""
    pictures = {"batch": 8, "rows": 224, "columns": 224}
    place = " [{batch},{rows},{columns},3]"
    return [
        workload("mean of channels" + place, partial(_of_channels, "mean", np.float32), **pictures),
        workload("mean of channels of bytes" + place, partial(_of_channels, "mean", np.uint8), **pictures),
        workload("greatest of channels" + place, partial(_of_channels, "max", np.float32), **pictures),
        workload("bytes scaled to planes" + place, _planes, **pictures),
        workload("centres of {clouds} clouds of {points} points", _centres, clouds=64, points=1000),
        workload("{count} products of 3x3 matrices, the right ones transposed", _products_of_matrices, count=20_000),
        workload("Mahalanobis distances of {points} by {centres} points", _mahalanobis, points=2304, centres=200),
        workload("forces of {bodies} bodies", _forces, bodies=500),
    ]


def _of_channels(name: str, dtype: Any, batch: int = 2, rows: int = 5, columns: int = 7) -> Contest:
    numbers = np.random.default_rng(0).integers(0, 255, (batch, rows, columns, 3)).astype(dtype)
    axes = (1, 2)

    def plain(np_: Any) -> Callable[[Any], Any]:
        return lambda x: getattr(np_, name)(x.astype(np.float32), axis=axes)

    reduce = "amax" if name == "max" else name
    in_torch = lambda torch: lambda x: getattr(torch, reduce)(x.float(), axes)  # noqa: E731
    return function_contest(None, [numbers], plain, torch=in_torch, tolerance=_TOLERANCE)


def _planes(batch: int = 2, rows: int = 5, columns: int = 7) -> Contest:
    pictures = np.random.default_rng(0).integers(0, 255, (batch, rows, columns, 3)).astype(np.uint8)
    mean, deviation = np.array([0.485, 0.456, 0.406], np.float32), np.array([0.229, 0.224, 0.225], np.float32)

    def plain(np_: Any) -> Callable[[Any], Any]:
        scale = np.float32(255)
        return lambda x: np_.transpose((x.astype(np.float32) / scale - mean) / deviation, (0, 3, 1, 2))

    def in_torch(torch: Any) -> Callable[[Any], Any]:
        shift, width = torch.from_numpy(mean), torch.from_numpy(deviation)
        return lambda x: ((x.float() / 255 - shift) / width).permute(0, 3, 1, 2).contiguous()

    return function_contest(None, [pictures], plain, torch=in_torch, tolerance=_TOLERANCE)


def _centres(clouds: int = 2, points: int = 9) -> Contest:
    in_torch = lambda torch: lambda x: x.mean(1)  # noqa: E731
    plain = lambda np_: lambda x: np_.mean(x, axis=1)  # noqa: E731
    return function_contest(None, floats((clouds, points, 3)), plain, torch=in_torch, tolerance=_TOLERANCE)


def _products_of_matrices(count: int = 9) -> Contest:
    in_torch = lambda torch: lambda a, b: a @ b.transpose(1, 2)  # noqa: E731
    plain = lambda np_: lambda a, b: a @ np_.swapaxes(b, 1, 2)  # noqa: E731
    return function_contest(None, signed((count, 3, 3), (count, 3, 3)), plain, torch=in_torch, tolerance=_TOLERANCE)


def _mahalanobis(points: int = 9, centres: int = 8) -> Contest:
    arrays = signed((points, 3), (centres, 3), (centres, 3, 3))
    terms = "pgi,gij,pgj->pg"

    def plain(np_: Any) -> Callable[..., Any]:
        def distances(x: Any, centre: Any, inverse: Any) -> Any:
            apart = x[:, None] - centre
            return np_.einsum(terms, apart, inverse, apart)

        return distances

    in_torch = lambda torch: lambda x, c, s: torch.einsum(terms, x[:, None] - c, s, x[:, None] - c)  # noqa: E731
    return function_contest(None, arrays, plain, torch=in_torch, tolerance=_TOLERANCE)


def _forces(bodies: int = 9) -> Contest:
    positions, masses = signed((bodies, 3))[0], floats((bodies,))[0]

    def plain(np_: Any) -> Callable[..., Any]:
        def forces(x: Any, mass: Any) -> Any:
            apart = x - x[:, None]
            square = np_.sum(apart * apart, axis=-1) + np.float32(0.01)
            return np_.sum(apart * (mass / (square * np_.sqrt(square)))[..., None], axis=1)

        return forces

    def in_torch(torch: Any) -> Callable[..., Any]:
        def forces(x: Any, mass: Any) -> Any:
            apart = x - x[:, None]
            square = (apart * apart).sum(-1) + 0.01
            return (apart * (mass / (square * square.sqrt()))[..., None]).sum(1)

        return forces

    return function_contest(None, [positions, masses], plain, torch=in_torch, tolerance=_TOLERANCE)
