"""Pieces of training and of inference: losses, optimizers, recurrent cells, decoding."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from benchmarks.harness import Contest, Workload, workload
from benchmarks.programs import function_contest, indices, signed

import xlalite as xl


def workloads() -> list[Workload]:
    """All of them."""
    return [
        *(
            workload(f"cross-entropy, integer labels{', gradient' * gradient} [{{rows}},{{classes}}]", build, **size)
            for gradient in (False, True)
            for size in ({"rows": 64, "classes": 32_000}, {"rows": 4096, "classes": 1000})
            for build in [partial(_cross_entropy, gradient)]
        ),
        workload("adam, {count} tensors [{rows},{columns}]", _adam, count=1, rows=4000, columns=1000),
        workload("adam, {count} tensors [{rows},{columns}]", _adam, count=200, rows=33, columns=61),
        *(
            workload(
                f"lstm, {{steps}} steps{', gradient' * gradient} [{{batch}},{{inputs}}] to {{hidden}}",
                partial(_lstm, gradient),
                steps=128,
                batch=batch,
                inputs=inputs,
                hidden=hidden,
            )
            for batch, inputs, hidden, gradient in (
                (32, 63, 128, False),
                (32, 63, 128, True),
                (1, 63, 128, False),
                (32, 256, 256, False),
            )
        ),
        *(
            workload("convlstm, elementwise part [{batch},{rows},{columns}] of {channels}", _convlstm_cell, **size)
            for size in (
                {"batch": 8, "rows": 64, "columns": 64, "channels": 64},
                {"batch": 5, "rows": 33, "columns": 31, "channels": 20},
            )
        ),
        *(
            workload(
                f"attention{', causal' * causal}{', training step' * trains} "
                "[{batch},{heads},{length},{width}]",
                partial(_attention_step if trains else _attention, causal),
                batch=batch,
                heads=heads,
                length=length,
                width=width,
            )
            for trains, sizes in (
                (False, ((8, 12, 512, 64), (5, 3, 129, 61), (1, 4, 2048, 64))),
                (True, ((8, 12, 512, 64), (1, 4, 2048, 64))),
            )
            for causal in (False, True)
            for batch, heads, length, width in sizes
        ),
        *(
            workload(
                "gpt decode step, {layers} layers of {heads}x{width}, {context} before, batch {batch}",
                _decode_step,
                layers=4,
                heads=8,
                width=64,
                context=context,
                batch=batch,
            )
            for context, batch in ((255, 1), (1000, 8))
        ),
    ]


def _cross_entropy(gradient: bool, rows: int = 5, classes: int = 7) -> Contest:
    def own(logits: Any, labels: Any) -> Any:
        each = xl.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
        loss = xl.reduce_mean(each)
        return xl.gradients(loss, [logits])[0] if gradient else loss

    def plain(x: np.ndarray, labels: np.ndarray) -> Any:
        e = x - x.max(1, keepdims=True)
        places = np.arange(rows), labels
        if not gradient:
            return np.mean(np.log(np.exp(e).sum(1)) - e[places])
        np.exp(e, out=e)
        e /= e.sum(1, keepdims=True)
        e[places] -= 1
        return e * np.float32(1 / rows)

    def in_jax(jax: Any) -> Callable[[Any, Any], Any]:
        def loss(x: Any, labels: Any) -> Any:
            chosen = jax.numpy.take_along_axis(jax.nn.log_softmax(x), labels[:, None], 1)
            return -jax.numpy.mean(chosen)

        return jax.grad(loss) if gradient else loss  # type: ignore[no-any-return]

    arguments = [*signed((rows, classes)), indices(classes, rows)]
    in_torch = lambda torch: partial(_cross_entropy_in_torch, gradient, torch)  # noqa: E731
    return function_contest(own, arguments, numpy=lambda _: plain, jax=in_jax, torch=in_torch)


def _cross_entropy_in_torch(gradient: bool, torch: Any, logits: Any, labels: Any) -> Any:
    logits = logits.detach().requires_grad_(gradient)
    loss = torch.nn.functional.cross_entropy(logits, labels.long())
    return torch.autograd.grad(loss, logits)[0] if gradient else loss


def _adam(count: int = 3, rows: int = 5, columns: int = 7) -> Contest:
    """Parameters, first and second moments, gradients; so many of each, one after another."""
    f32 = np.float32

    def plain(np_: Any) -> Callable[..., Any]:
        def step(*arrays: Any) -> list[Any]:
            parameters, first, second, gradients = (arrays[i * count : (i + 1) * count] for i in range(4))
            m = [f32(0.9) * a + f32(0.1) * g for a, g in zip(first, gradients, strict=True)]
            v = [f32(0.999) * a + f32(0.001) * g * g for a, g in zip(second, gradients, strict=True)]
            moved = [p - f32(0.001) * a / (np_.sqrt(b) + f32(1e-8)) for p, a, b in zip(parameters, m, v, strict=True)]
            return [*moved, *m, *v]

        return step

    shapes = [(rows, columns)] * (4 * count)
    arguments = signed(*shapes)
    arguments[2 * count : 3 * count] = [np.square(each) for each in arguments[2 * count : 3 * count]]
    return function_contest(None, arguments, plain)


def _lstm(gradient: bool, steps: int = 3, batch: int = 2, inputs: int = 3, hidden: int = 5) -> Contest:
    """The last state of a cell, or gradients of the sum of its squares."""

    def own(x: Any, w: Any, u: Any, b: Any) -> Any:
        zeros = xl.zeros([batch, hidden])

        def step(i: Any, h: Any, c: Any) -> tuple[Any, Any, Any]:
            gates = xl.matmul(xl.gather(x, i), w) + xl.matmul(h, u) + b
            into, keep, new, out = xl.split(gates, 4, axis=1)
            c = xl.sigmoid(keep) * c + xl.sigmoid(into) * xl.tanh(new)
            return i + 1, xl.sigmoid(out) * xl.tanh(c), c

        _, last, _ = xl.while_loop(lambda i, h, c: i < steps, step, [xl.constant(0), zeros, zeros])
        return xl.gradients(xl.reduce_sum(xl.square(last)), [w, u, b]) if gradient else last

    def sigmoid(x: np.ndarray) -> np.ndarray:
        return np.float32(1) / (np.float32(1) + np.exp(-x))

    def plain(x: np.ndarray, w: np.ndarray, u: np.ndarray, b: np.ndarray) -> Any:
        h = c = np.zeros((batch, hidden), np.float32)
        trail = []
        for row in x:
            into, keep, new, out = np.split(row @ w + h @ u + b, 4, axis=1)
            into, keep, new, out = sigmoid(into), sigmoid(keep), np.tanh(new), sigmoid(out)
            before, c = (h, c), keep * c + into * new
            h = out * np.tanh(c)
            trail.append((row, *before, into, keep, new, out, np.tanh(c)))
        return _lstm_backward(trail, u, 2 * h) if gradient else h

    def in_jax(jax: Any) -> Callable[..., Any]:
        jnp = jax.numpy

        def last(x: Any, w: Any, u: Any, b: Any) -> Any:
            def step(state: Any, row: Any) -> tuple[Any, None]:
                h, c = state
                into, keep, new, out = jnp.split(row @ w + h @ u + b, 4, axis=1)
                c = jax.nn.sigmoid(keep) * c + jax.nn.sigmoid(into) * jnp.tanh(new)
                return (jax.nn.sigmoid(out) * jnp.tanh(c), c), None

            zeros = jnp.zeros((batch, hidden))
            return jax.lax.scan(step, (zeros, zeros), x)[0][0]

        if not gradient:
            return last
        return jax.grad(lambda *arrays: jnp.sum(last(*arrays) ** 2), argnums=(1, 2, 3))  # type: ignore[no-any-return]

    x, w, u, b = signed((steps, batch, inputs), (inputs, 4 * hidden), (hidden, 4 * hidden), (4 * hidden,))
    arguments = [x, w / np.float32(inputs**0.5), u / np.float32(hidden**0.5), b]
    products = 2 * steps * batch * (inputs + hidden) * 4 * hidden
    flops = products * 3 if gradient else products
    return function_contest(own, arguments, tolerance=1e-3, jax=in_jax, numpy=lambda _: plain, flops=flops)


def _convlstm_cell(batch: int = 2, rows: int = 3, columns: int = 2, channels: int = 5) -> Contest:
    """What comes after the convolutions: gates that see the cells, new cells and outputs."""

    def plain(np_: Any) -> Callable[..., Any]:
        def sigmoid(x: Any) -> Any:
            return np_.float32(1) / (np_.float32(1) + np_.exp(-x))

        def cell(from_input: Any, from_state: Any, c: Any, peep: Any, b: Any) -> list[Any]:
            gates = from_input + from_state + b
            into, keep, new, out = (gates[..., i * channels : (i + 1) * channels] for i in range(4))
            c = sigmoid(keep + peep[0] * c) * c + sigmoid(into + peep[1] * c) * np_.tanh(new)
            return [sigmoid(out + peep[2] * c) * np_.tanh(c), c]

        return cell

    places = (rows, columns, channels)
    gates = (batch, rows, columns, 4 * channels)
    arguments = signed(gates, gates, (batch, *places), (3, *places), (4 * channels,))
    return function_contest(None, arguments, plain)


def _lstm_backward(trail: Sequence[tuple[np.ndarray, ...]], u: np.ndarray, dh: np.ndarray) -> list[np.ndarray]:
    """Gradients of both weights and of the offset, given what each step saw and the gradient of the last state."""
    dc = np.zeros_like(dh)
    dw: Any = 0
    du: Any = 0
    db: Any = 0
    for row, h, c, into, keep, new, out, shown in reversed(trail):
        dc = dc + dh * out * (1 - shown * shown)
        parts = (dc * new * into * (1 - into), dc * c * keep * (1 - keep), dc * into * (1 - new * new))
        gates = np.concatenate([*parts, dh * shown * out * (1 - out)], 1)
        dw, du, db = dw + row.T @ gates, du + h.T @ gates, db + gates.sum(0)
        dh, dc = gates @ u.T, dc * keep
    return [dw, du, db]


def _attention(causal: bool, batch: int = 2, heads: int = 2, length: int = 5, width: int = 3) -> Contest:
    def plain(np_: Any) -> Callable[..., Any]:
        return lambda q, k, v: _probabilities(np_, q, k, causal=causal) @ v

    def in_torch(torch: Any) -> Callable[..., Any]:
        attend = torch.nn.functional.scaled_dot_product_attention
        return lambda q, k, v: attend(q, k, v, is_causal=causal)

    arguments = signed(*[(batch, heads, length, width)] * 3)
    return function_contest(partial(_attended, causal), arguments, plain, torch=in_torch)


def _attended(causal: bool, q: Any, k: Any, v: Any) -> Any:
    batch, heads, length, width = q.shape
    scores = xl.matmul(q, k, transpose_b=True) * np.float32(int(width) ** -0.5)
    if causal:
        places = xl.range(length)
        hidden = xl.fill([batch, heads, length, length], np.float32(-np.inf))
        scores = xl.where(places[:, None] >= places, scores, hidden)
    return xl.matmul(xl.nn.softmax(scores), v)


def _probabilities(np_: Any, q: Any, k: Any, *, causal: bool) -> Any:
    length, width = q.shape[2:]
    scores = q @ np_.swapaxes(k, 2, 3) * np.float32(width**-0.5)
    if causal:
        scores = np_.where(np_.arange(length)[:, None] >= np_.arange(length), scores, np.float32(-np.inf))
    e = np_.exp(scores - np_.max(scores, axis=-1, keepdims=True))
    return e / np_.sum(e, axis=-1, keepdims=True)


def _attention_step(causal: bool, batch: int = 2, heads: int = 2, length: int = 5, width: int = 3) -> Contest:
    """Gradients of half the squared distance from what is wanted."""

    def own(q: Any, k: Any, v: Any, wanted: Any) -> Any:
        return xl.gradients(xl.reduce_sum(xl.square(_attended(causal, q, k, v) - wanted)) * np.float32(0.5), [q, k, v])

    def plain(q: np.ndarray, k: np.ndarray, v: np.ndarray, wanted: np.ndarray) -> list[np.ndarray]:
        p = _probabilities(np, q, k, causal=causal)
        d = p @ v - wanted
        dp = d @ np.swapaxes(v, 2, 3)
        ds = p * (dp - np.sum(p * dp, axis=-1, keepdims=True)) * np.float32(width**-0.5)
        return [ds @ k, np.swapaxes(ds, 2, 3) @ q, np.swapaxes(p, 2, 3) @ d]

    def in_jax(jax: Any) -> Callable[..., Any]:
        def loss(q: Any, k: Any, v: Any, wanted: Any) -> Any:
            return 0.5 * jax.numpy.sum((_probabilities(jax.numpy, q, k, causal=causal) @ v - wanted) ** 2)

        gradient: Callable[..., Any] = jax.grad(loss, argnums=(0, 1, 2))
        return gradient

    def in_torch(torch: Any) -> Callable[..., Any]:
        def step(q: Any, k: Any, v: Any, wanted: Any) -> Any:
            leaves = [each.detach().requires_grad_() for each in (q, k, v)]
            attended = torch.nn.functional.scaled_dot_product_attention(*leaves, is_causal=causal)
            return torch.autograd.grad(0.5 * torch.sum((attended - wanted) ** 2), leaves)

        return step

    arguments = signed(*[(batch, heads, length, width)] * 4)
    flops = 14 * batch * heads * length * length * width
    return function_contest(
        own, arguments, tolerance=1e-3, jax=in_jax, numpy=lambda _: plain, torch=in_torch, flops=flops
    )


def _decode_step(layers: int = 1, heads: int = 2, width: int = 4, context: int = 5, batch: int = 2) -> Contest:
    """One token more for each sequence: its features, and caches from which the oldest entries have gone."""
    features = heads * width

    def plain(np_: Any) -> Callable[..., Any]:
        def normalized(x: Any) -> Any:
            d = x - np_.mean(x, axis=-1, keepdims=True)
            return d / np_.sqrt(np_.mean(d * d, axis=-1, keepdims=True) + np_.float32(1e-5))

        def layer(x: Any, keys: Any, values: Any, qkv: Any, out: Any, up: Any, down: Any) -> tuple[Any, Any, Any]:
            projected = np_.reshape(normalized(x) @ qkv, (batch, 3, heads, 1, width))
            keys = np_.concatenate([keys[:, :, 1:], projected[:, 1]], 2)
            values = np_.concatenate([values[:, :, 1:], projected[:, 2]], 2)
            scores = projected[:, 0] @ np_.swapaxes(keys, 2, 3) * np_.float32(width**-0.5)
            e = np_.exp(scores - np_.max(scores, axis=-1, keepdims=True))
            attended = (e / np_.sum(e, axis=-1, keepdims=True)) @ values
            x = x + np_.reshape(attended, (batch, features)) @ out
            h = normalized(x) @ up
            h = (
                h
                * np_.float32(0.5)
                * (np_.float32(1) + np_.tanh(np_.float32(0.8) * (h + np_.float32(0.0447) * h * h * h)))
            )
            return x + h @ down, keys, values

        def step(x: Any, *rest: Any) -> list[Any]:
            caches = []
            for i in range(layers):
                x, keys, values = layer(x, *rest[6 * i : 6 * i + 6])
                caches += [keys, values]
            return [x, *caches]

        return step

    cache = (batch, heads, context, width)
    weights = [(features, 3 * features), (features, features), (features, 4 * features), (4 * features, features)]
    shapes: Sequence[tuple[int, ...]] = [(batch, features), *[cache, cache, *weights] * layers]
    scale = np.float32(features**-0.5)
    arguments = [each if each.ndim == 4 else each * scale for each in signed(*shapes)]
    return function_contest(None, arguments, plain, tolerance=1e-3)
