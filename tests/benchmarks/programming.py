"""Loops in which each step needs the one before: a heat equation and dynamic programming."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from benchmarks.harness import Contest, Workload, workload
from benchmarks.programs import counts_below, function_contest, indices, signed, text_contest

import xlalite as xl


def workloads() -> list[Workload]:
    """All of them."""
    return [
        workload("heat equation by rolls [{rows},{columns}], {steps} steps", _heat, rows=512, columns=512, steps=100),
        workload("heat equation by rolls [{rows},{columns}], {steps} steps", _heat, rows=63, columns=1000, steps=100),
        workload(
            "heat equation inside a border [{rows},{columns}], {steps} steps", _inside, rows=512, columns=512, steps=100
        ),
        workload(
            "heat equation inside a border [{rows},{columns}], {steps} steps", _inside, rows=63, columns=1000, steps=99
        ),
        workload("viterbi, {states} states, {steps} steps", _viterbi, states=64, steps=1000),
        workload("levenshtein, {long} and {short} letters", _levenshtein, long=1000, short=777),
        workload("beam search, {beams} beams of {words} words, {steps} steps", _beam, beams=8, words=1000, steps=64),
    ]


def _heat(rows: int = 5, columns: int = 7, steps: int = 3) -> Contest:
    def rolled(x: Any, by: int, axis: int, concatenate: Callable[..., Any]) -> Any:
        front, back = ((-1, None), (None, -1)) if by == 1 else ((1, None), (None, 1))
        parts = [x[slice(*p)] if axis == 0 else x[:, slice(*p)] for p in (front, back)]
        return concatenate(parts, axis)

    def own_step(x: Any) -> Any:
        around = [rolled(x, by, axis, xl.concat) for axis in (0, 1) for by in (1, -1)]
        return x + np.float32(0.1) * (around[0] + around[1] + around[2] + around[3] - np.float32(4) * x)

    def own(x: Any) -> Any:
        return xl.while_loop(lambda i, _: i < steps, lambda i, a: (i + 1, own_step(a)), [xl.constant(0), x])[1]

    def step(np_: Any, x: Any) -> Any:
        around = np_.roll(x, 1, 0) + np_.roll(x, -1, 0) + np_.roll(x, 1, 1) + np_.roll(x, -1, 1)
        return x + np.float32(0.1) * (around - np.float32(4) * x)

    def plain(x: np.ndarray) -> Any:
        for _ in range(steps):
            x = step(np, x)
        return x

    return function_contest(
        own,
        signed((rows, columns)),
        numpy=lambda _: plain,
        jax=lambda jax: lambda x: jax.lax.fori_loop(0, steps, lambda _, a: step(jax.numpy, a), x),
        numba=lambda numba: _heat_loops(numba, steps),
        flops=7 * rows * columns * steps,
    )


def _heat_loops(numba: Any, steps: int) -> Callable[[Any], Any]:
    def heat(x: Any) -> Any:
        rows, columns = x.shape
        old, new = x.copy(), x.copy()
        for _ in range(steps):
            for i in range(rows):
                above, below = old[i - 1], old[(i + 1) % rows]
                for j in range(columns):
                    around = above[j] + below[j] + old[i, j - 1] + old[i, (j + 1) % columns]
                    new[i, j] = old[i, j] + np.float32(0.1) * (around - np.float32(4) * old[i, j])
            old, new = new, old
        return old

    return numba.njit(heat, fastmath=True)  # type: ignore[no-any-return]


def _inside(rows: int = 5, columns: int = 7, steps: int = 3) -> Contest:
    """The elements inside take steps, those around them stay."""
    whole, part = f"f32[{rows},{columns}]", f"f32[{rows - 2},{columns - 2}]"
    state, size = f"(s32[], {whole})", (rows - 2, columns - 2)
    places = {"at": (1, 1), "above": (0, 1), "below": (2, 1), "left": (1, 0), "right": (1, 2)}
    slices = "\n".join(
        f"  {name} = {part} slice(x), slice={{{', '.join(f'[{b}:{b + n}]' for b, n in zip(begin, size, strict=True))}}}"
        for name, begin in places.items()
    )
    computations = f"""
below_limit {{
  s = {state} parameter(0)
  n = s32[] get-tuple-element(s), index=0
  limit = s32[] constant({steps})
  ROOT r = pred[] compare(n, limit), direction=LT
}}
step {{
  s = {state} parameter(0)
  n = s32[] get-tuple-element(s), index=0
  x = {whole} get-tuple-element(s), index=1
  one = s32[] constant(1)
  next = s32[] add(n, one)
{slices}
  rows = {part} add(above, below)
  row_and_left = {part} add(rows, left)
  around = {part} add(row_and_left, right)
  four = f32[] constant(4)
  fours = {part} broadcast(four), dimensions={{}}
  here = {part} multiply(fours, at)
  change = {part} subtract(around, here)
  tenth = f32[] constant(0.1)
  tenths = {part} broadcast(tenth), dimensions={{}}
  scaled = {part} multiply(tenths, change)
  new = {part} add(at, scaled)
  put = {whole} dynamic-update-slice(x, new, one, one)
  ROOT t = {state} tuple(next, put)
}}"""
    lines = f"""
  x = {whole} parameter(0)
  z = s32[] constant(0)
  t = {state} tuple(z, x)
  w = {state} while(t), condition=below_limit, body=step
  ROOT r = {whole} get-tuple-element(w), index=1
"""

    def stepped(x: Any) -> Any:
        at, around = x[1:-1, 1:-1], x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:]
        return at + np.float32(0.1) * (around - np.float32(4) * at)

    def plain(x: np.ndarray) -> np.ndarray:
        x = x.copy()
        for _ in range(steps):
            x[1:-1, 1:-1] = stepped(x)
        return x

    return text_contest(
        lines,
        signed((rows, columns)),
        computations=computations,
        numpy=lambda _: plain,
        jax=lambda jax: lambda x: jax.lax.fori_loop(0, steps, lambda _, a: a.at[1:-1, 1:-1].set(stepped(a)), x),
        flops=7 * (rows - 2) * (columns - 2) * steps,
    )


def _viterbi(states: int = 3, steps: int = 5) -> Contest:
    """The likeliest path: scores forward with the best state before each, then the path backward."""
    before, score, square = f"s32[{steps},{states}]", f"f32[{states}]", f"f32[{states},{states}]"
    seen, path = f"f32[{steps},{states}]", f"s32[{steps}]"
    forward = f"(s32[], {score}, {before}, {seen}, {square})"
    backward = f"(s32[], s32[], {path}, {before})"
    computations = f"""
better {{
  a = f32[] parameter(0)
  i = s32[] parameter(1)
  b = f32[] parameter(2)
  j = s32[] parameter(3)
  first = pred[] compare(a, b), direction=GE
  v = f32[] select(first, a, b)
  k = s32[] select(first, i, j)
  ROOT t = (f32[], s32[]) tuple(v, k)
}}
{counts_below(forward, steps, "forward_below")}forward_step {{
  s = {forward} parameter(0)
  n = s32[] get-tuple-element(s), index=0
  old = {score} get-tuple-element(s), index=1
  kept = {before} get-tuple-element(s), index=2
  seen = {seen} get-tuple-element(s), index=3
  moves = {square} get-tuple-element(s), index=4
  z = s32[] constant(0)
  one = s32[] constant(1)
  low = f32[] constant(-inf)
  next = s32[] add(n, one)
  from = {square} broadcast(old), dimensions={{0}}
  all = {square} add(from, moves)
  i = s32[{states},{states}] iota(), iota_dimension=0
  best = ({score}, s32[{states}]) reduce(all, i, low, z), dimensions={{0}}, to_apply=better
  v = {score} get-tuple-element(best), index=0
  k = s32[{states}] get-tuple-element(best), index=1
  krow = s32[1,{states}] reshape(k)
  row = f32[1,{states}] dynamic-slice(seen, n, z), dynamic_slice_sizes={{1,{states}}}
  flat = {score} reshape(row)
  new = {score} add(v, flat)
  put = {before} dynamic-update-slice(kept, krow, n, z)
  ROOT t = {forward} tuple(next, new, put, seen, moves)
}}
backward_below {{
  s = {backward} parameter(0)
  n = s32[] get-tuple-element(s), index=0
  z = s32[] constant(0)
  ROOT r = pred[] compare(n, z), direction=GT
}}
backward_step {{
  s = {backward} parameter(0)
  n = s32[] get-tuple-element(s), index=0
  state = s32[] get-tuple-element(s), index=1
  path = {path} get-tuple-element(s), index=2
  kept = {before} get-tuple-element(s), index=3
  one = s32[] constant(1)
  next = s32[] subtract(n, one)
  found = s32[1,1] dynamic-slice(kept, n, state), dynamic_slice_sizes={{1,1}}
  last = s32[] reshape(found)
  entry = s32[1] reshape(found)
  put = {path} dynamic-update-slice(path, entry, next)
  ROOT t = {backward} tuple(next, last, put, kept)
}}
"""
    body = f"""
  seen = {seen} parameter(0)
  moves = {square} parameter(1)
  z = s32[] constant(0)
  one = s32[] constant(1)
  most = s32[] constant({steps - 1})
  low = f32[] constant(-inf)
  row = f32[1,{states}] slice(seen), slice={{[0:1], [0:{states}]}}
  start = {score} reshape(row)
  none = {before} broadcast(z), dimensions={{}}
  f = {forward} tuple(one, start, none, seen, moves)
  g = {forward} while(f), condition=forward_below, body=forward_step
  last = {score} get-tuple-element(g), index=1
  kept = {before} get-tuple-element(g), index=2
  i = s32[{states}] iota(), iota_dimension=0
  best = (f32[], s32[]) reduce(last, i, low, z), dimensions={{0}}, to_apply=better
  end = s32[] get-tuple-element(best), index=1
  zeros = {path} broadcast(z), dimensions={{}}
  entry = s32[1] reshape(end)
  path = {path} dynamic-update-slice(zeros, entry, most)
  b = {backward} tuple(most, end, path, kept)
  c = {backward} while(b), condition=backward_below, body=backward_step
  ROOT r = {path} get-tuple-element(c), index=2
"""

    def plain(seen: np.ndarray, moves: np.ndarray) -> np.ndarray:
        score, kept = seen[0], np.zeros(seen.shape, np.int32)
        for n in range(1, steps):
            every = score[:, None] + moves
            kept[n] = every.argmax(0)
            score = every.max(0) + seen[n]
        path = np.zeros(steps, np.int32)
        path[-1] = score.argmax()
        for n in range(steps - 1, 0, -1):
            path[n - 1] = kept[n, path[n]]
        return path

    def in_jax(jax: Any) -> Callable[[Any, Any], Any]:
        jnp = jax.numpy

        def viterbi(seen: Any, moves: Any) -> Any:
            def onward(score: Any, row: Any) -> tuple[Any, Any]:
                every = score[:, None] + moves
                return every.max(0) + row, every.argmax(0)

            score, kept = jax.lax.scan(onward, seen[0], seen[1:])
            end = score.argmax()
            _, path = jax.lax.scan(lambda state, row: (row[state], row[state]), end, kept, reverse=True)
            return jnp.concatenate([path, end[None]])

        return viterbi

    arguments = signed((steps, states), (states, states))
    moved = 4 * steps * (2 * states + 1)
    options: dict[str, Any] = {"flops": 2 * steps * states * states, "traffic": (moved, 4 * steps), "tolerance": 0}
    return text_contest(body, arguments, computations=computations, numpy=lambda _: plain, jax=in_jax, **options)


def _levenshtein(long: int = 7, short: int = 5) -> Contest:
    """The distance of two words, a row of the table at a time: insertions are a running minimum."""
    row, state = f"s32[{short + 1}]", f"(s32[], s32[{short + 1}], s32[{long}], s32[{short}])"
    computations = f"""
{counts_below(state, long)}step {{
  s = {state} parameter(0)
  n = s32[] get-tuple-element(s), index=0
  old = {row} get-tuple-element(s), index=1
  a = s32[{long}] get-tuple-element(s), index=2
  b = s32[{short}] get-tuple-element(s), index=3
  one = s32[] constant(1)
  next = s32[] add(n, one)
  letter = s32[1] dynamic-slice(a, n), dynamic_slice_sizes={{1}}
  scalar = s32[] reshape(letter)
  letters = s32[{short}] broadcast(scalar), dimensions={{}}
  other = pred[{short}] compare(letters, b), direction=NE
  cost = s32[{short}] convert(other)
  left = s32[{short}] slice(old), slice={{[0:{short}]}}
  right = s32[{short}] slice(old), slice={{[1:{short + 1}]}}
  ones = s32[{short}] broadcast(one), dimensions={{}}
  changed = s32[{short}] add(left, cost)
  removed = s32[{short}] add(right, ones)
  best = s32[{short}] minimum(changed, removed)
  head = s32[1] reshape(next)
  put = {row} concatenate(head, best), dimensions={{0}}
  place = {row} iota(), iota_dimension=0
  level = {row} subtract(put, place)
  much = s32[] constant({2 * (long + short)})
  lowest = {row} reduce-window(level, much), window={{size={short + 1} pad={short}_0}}, to_apply=min_s32
  new = {row} add(lowest, place)
  ROOT t = {state} tuple(next, new, a, b)
}}
"""
    body = f"""
  a = s32[{long}] parameter(0)
  b = s32[{short}] parameter(1)
  z = s32[] constant(0)
  start = {row} iota(), iota_dimension=0
  t = {state} tuple(z, start, a, b)
  w = {state} while(t), condition=below, body=step
  last = {row} get-tuple-element(w), index=1
  d = s32[1] slice(last), slice={{[{short}:{short + 1}]}}
  ROOT r = s32[] reshape(d)
"""
    place = np.arange(short + 1, dtype=np.int32)

    def row_after(np_: Any, old: Any, n: Any, letter: Any, b: Any, running: Callable[[Any], Any]) -> Any:
        best = np_.minimum(old[:-1] + (letter != b), old[1:] + 1)
        return running(np_.concatenate([np_.reshape(n + 1, (1,)), best]) - place) + place

    def plain(a: np.ndarray, b: np.ndarray) -> Any:
        row = place
        for n, letter in enumerate(a):
            row = row_after(np, row, np.int32(n), letter, b, np.minimum.accumulate)
        return row[-1]

    def in_jax(jax: Any) -> Callable[[Any, Any], Any]:
        def step(b: Any, a: Any, n: Any, row: Any) -> Any:
            return row_after(jax.numpy, row, n, a[n], b, jax.lax.cummin)

        return lambda a, b: jax.lax.fori_loop(0, long, lambda n, row: step(b, a, n, row), jax.numpy.asarray(place))[-1]

    arguments = [indices(4, long), indices(4, short, seed=2)]
    options: dict[str, Any] = {"flops": 6 * long * short, "tolerance": 0}
    return text_contest(
        body,
        arguments,
        computations=computations,
        numpy=lambda _: plain,
        jax=in_jax,
        numba=_levenshtein_loops,
        **options,
    )


def _levenshtein_loops(numba: Any) -> Callable[[Any, Any], Any]:
    def levenshtein(a: Any, b: Any) -> Any:
        row = np.arange(len(b) + 1)
        for i in range(len(a)):
            corner, row[0] = row[0], i + 1
            for j in range(len(b)):
                changed = corner + (a[i] != b[j])
                corner = row[j + 1]
                row[j + 1] = min(changed, corner + 1, row[j] + 1)
        return row[-1]

    return numba.njit(levenshtein)  # type: ignore[no-any-return]


def _beam(beams: int = 2, words: int = 7, steps: int = 3) -> Contest:
    """Scores of the best paths from word to word, given what each move is worth."""

    def onward(top: Callable[[Any], Any], reshape: Callable[..., Any], score: Any, moves: Any) -> tuple[Any, Any]:
        best, place = top(reshape(reshape(score, (beams, 1)) + moves, (beams * words,)))
        return best, place % words

    score, word, table = f"f32[{beams}]", f"s32[{beams}]", f"f32[{words},{words}]"
    state = f"(s32[], {score}, {word}, {table})"
    computations = f"""
{counts_below(state, steps)}step {{
  s = {state} parameter(0)
  n = s32[] get-tuple-element(s), index=0
  old = {score} get-tuple-element(s), index=1
  last = {word} get-tuple-element(s), index=2
  worth = {table} get-tuple-element(s), index=3
  one = s32[] constant(1)
  next = s32[] add(n, one)
  moves = f32[{beams},{words}] gather(worth, last), offset_dims={{1}}, collapsed_slice_dims={{0}}, \
start_index_map={{0}}, index_vector_dim=1, slice_sizes={{1,{words}}}
  from = f32[{beams},{words}] broadcast(old), dimensions={{0}}
  all = f32[{beams},{words}] add(from, moves)
  flat = f32[{beams * words}] reshape(all)
  best = ({score}, {word}) topk(flat), k={beams}, largest=true
  new = {score} get-tuple-element(best), index=0
  place = {word} get-tuple-element(best), index=1
  many = s32[] constant({words})
  each = {word} broadcast(many), dimensions={{}}
  found = {word} remainder(place, each)
  ROOT t = {state} tuple(next, new, found, worth)
}}
"""
    body = f"""
  worth = {table} parameter(0)
  z = s32[] constant(0)
  nothing = f32[] constant(0)
  start = {score} broadcast(nothing), dimensions={{}}
  first = {word} iota(), iota_dimension=0
  t = {state} tuple(z, start, first, worth)
  w = {state} while(t), condition=below, body=step
  ROOT r = {score} get-tuple-element(w), index=1
"""

    def plain(worth: np.ndarray) -> Any:
        def top(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            order = np.argsort(-x, kind="stable")[:beams]
            return x[order], order

        score, word = np.zeros(beams, np.float32), np.arange(beams)
        for _ in range(steps):
            score, word = onward(top, np.reshape, score, worth[word])
        return score

    def in_jax(jax: Any) -> Callable[[Any], Any]:
        def step(worth: Any, state: Any) -> Any:
            score, word = state
            return onward(lambda x: jax.lax.top_k(x, beams), jax.numpy.reshape, score, worth[word])

        start = np.zeros(beams, np.float32), np.arange(beams, dtype=np.int32)
        return lambda worth: jax.lax.fori_loop(0, steps, lambda _, state: step(worth, state), start)[0]

    arguments = signed((words, words))
    return text_contest(body, arguments, computations=computations, numpy=lambda _: plain, jax=in_jax, tolerance=1e-5)
