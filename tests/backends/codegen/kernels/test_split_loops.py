"""Loops that are split where concatenations, paddings and updates turn to another operand."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from xlalite.hlo.types.dtype import DType


def text_of(shape: str, *lines: str) -> str:
    return f"HloModule m\nENTRY e {{\n  x = {shape} parameter(0)\n  " + "\n  ".join(lines) + "\n}\n"


def dims_of(dims: Sequence[int]) -> str:
    return ",".join(map(str, dims))


def rotated(name: str, operand: str, dtype: str, dims: Sequence[int], by: int, along: int) -> list[str]:
    """`roll` as jax writes it."""

    def part(number: int, begin: int, end: int) -> str:
        sizes = [end - begin if d == along else size for d, size in enumerate(dims)]
        ranges = [f"[{begin}:{end}]" if d == along else f"[0:{size}]" for d, size in enumerate(dims)]
        return f"{name}{number} = {dtype}[{dims_of(sizes)}] slice({operand}), slice={{{', '.join(ranges)}}}"

    seam = dims[along] - by % dims[along]
    joined = f"{name} = {dtype}[{dims_of(dims)}] concatenate({name}0, {name}1), dimensions={{{along}}}"
    return [part(0, seam, dims[along]), part(1, 0, seam), joined]


def neighbours(dtype: str, dims: Sequence[int]) -> str:
    """The sum of an array and its rotations by one along every dimension, both ways."""
    shape = f"{dtype}[{dims_of(dims)}]"
    lines, names = [], []
    for along, size in enumerate(dims):
        for by in {1 % size, -1 % size} - {0}:
            names.append(f"r{along}_{by}_")
            lines += rotated(names[-1], "x", dtype, dims, by, along)
    total = "x"
    for number, name in enumerate(names):
        lines.append(f"s{number} = {shape} add({total}, {name})")
        total = f"s{number}"
    return text_of(shape, *lines, f"ROOT r = {shape} negate({total})")


def whole_numbers(rng: np.random.Generator, dtype: str, dims: Sequence[int]) -> Any:
    return rng.integers(-9, 9, tuple(dims)).astype(DType.from_name(dtype).numpy)


@pytest.mark.parametrize("dims", [(3,), (33,), (4097,), (5, 33), (2, 48), (1, 47), (7, 100), (3, 4, 35)], ids=str)
def test_rotations_are_read_where_they_are_used(
    check: Any, kernels: Any, rng: np.random.Generator, dims: tuple[int, ...]
) -> None:
    for threads in (1, 2, 5):
        executable = check(neighbours("f32", dims), whole_numbers(rng, "f32", dims), num_threads=threads)
        assert dims[-1] < 32 or kernels(executable) == ["loop"]


@pytest.mark.parametrize("dtype", ["f64", "bf16", "s8", "u16", "s4", "c64"])
def test_rotations_of_every_width(check: Any, kernels: Any, rng: np.random.Generator, dtype: str) -> None:
    assert kernels(check(neighbours(dtype, (5, 67)), whole_numbers(rng, dtype, (5, 67)))) == ["loop"]


def test_narrow_rotations_are_kernels_of_their_own(check: Any, kernels: Any, rng: np.random.Generator) -> None:
    """Where a split loop would have three short vectors for one; one seam is as good as none."""
    executable = check(neighbours("f32", (9, 16)), whole_numbers(rng, "f32", (9, 16)))
    assert kernels(executable) == ["concatenate", "loop"]


def test_a_rotation_of_a_rotation(check: Any, kernels: Any, rng: np.random.Generator) -> None:
    dims = (6, 40)
    lines = [*rotated("a", "x", "f32", dims, 2, 0), *rotated("b", "a", "f32", dims, -3, 1)]
    text = text_of("f32[6,40]", *lines, "ROOT r = f32[6,40] subtract(b, x)")
    assert kernels(check(text, whole_numbers(rng, "f32", dims))) == ["loop"]


def test_expensive_pieces_are_computed_once(check: Any, kernels: Any, rng: np.random.Generator) -> None:
    """Each in its own part of the loop, while a rotation of something expensive would compute it twice."""
    pieces = ["a = f32[5,20] slice(x), slice={[0:5], [0:20]}", "b = f32[5,20] slice(x), slice={[0:5], [20:40]}"]
    pieces += ["e = f32[5,20] exponential(a)", "t = f32[5,20] tanh(b)"]
    joined = "j = f32[5,40] concatenate(e, t), dimensions={1}"
    text = text_of("f32[5,40]", *pieces, joined, "ROOT r = f32[5,40] add(j, x)")
    argument = rng.standard_normal((5, 40)).astype(np.float32)
    assert kernels(check(text, argument, ulps=4)) == ["loop"]
    lines = ["e = f32[5,40] exponential(x)", *rotated("a", "e", "f32", (5, 40), 1, 1)]
    lines += [*rotated("b", "e", "f32", (5, 40), -1, 1), "ROOT r = f32[5,40] add(a, b)"]
    assert kernels(check(text_of("f32[5,40]", *lines), argument, ulps=4)) == ["loop", "loop"]


def test_rotated_halves_beside_the_whole(check: Any, kernels: Any, rng: np.random.Generator) -> None:
    """Rotary positions: x * c + concatenate(-x[half:], x[:half]) * s."""
    lines = ["a = f32[6,4,32] slice(x), slice={[0:6],[0:4],[0:32]}"]
    lines += ["b = f32[6,4,32] slice(x), slice={[0:6],[0:4],[32:64]}", "n = f32[6,4,32] negate(b)"]
    lines += ["j = f32[6,4,64] concatenate(n, a), dimensions={2}", "c = f32[6,64] parameter(1)"]
    lines += ["cs = f32[6,4,64] broadcast(c), dimensions={0,2}", "m = f32[6,4,64] multiply(j, cs)"]
    text = text_of("f32[6,4,64]", *lines, "ROOT r = f32[6,4,64] add(x, m)")
    arguments = whole_numbers(rng, "f32", (6, 4, 64)), whole_numbers(rng, "f32", (6, 64))
    assert kernels(check(text, *arguments)) == ["loop"]


@pytest.mark.parametrize("dims", [(9,), (5000,), (4, 50), (3, 5, 33)], ids=str)
def test_borders_of_every_kind(check: Any, kernels: Any, rng: np.random.Generator, dims: tuple[int, ...]) -> None:
    """Repeated, mirrored and constant ones around an array, then the sum of the elements on both sides."""
    for kind in ("edge", "mirror", "pad"):
        lines, name, sizes = [], "x", list(dims)
        for d, size in enumerate(dims):
            low, high = (
                (f"[{1}:{2}]", f"[{size - 2}:{size - 1}]") if kind == "mirror" else ("[0:1]", f"[{size - 1}:{size}]")
            )
            others = [[f"[0:{n}]" for n in sizes] for _ in range(2)]
            others[0][d], others[1][d] = low, high
            border = dims_of([1 if e == d else n for e, n in enumerate(sizes)])
            if kind != "pad":
                for which in (0, 1):
                    ranges = ", ".join(others[which])
                    lines.append(f"b{d}{which} = f32[{border}] slice({name}), slice={{{ranges}}}")
            sizes[d] += 2
            result = f"w{d} = f32[{dims_of(sizes)}]"
            padding = "x".join("1_1" if e == d else "0_0" for e in range(len(dims)))
            lines.append(
                f"{result} pad({name}, z), padding={padding}"
                if kind == "pad"
                else f"{result} concatenate(b{d}0, {name}, b{d}1), dimensions={{{d}}}"
            )
            name = f"w{d}"
        total = "x"
        for d in range(len(dims)):
            for which, begin in (("l", 0), ("h", 2)):
                ranges = [f"[{begin}:{begin + n}]" if e == d else f"[1:{n + 1}]" for e, n in enumerate(dims)]
                lines.append(f"{which}{d} = f32[{dims_of(dims)}] slice({name}), slice={{{', '.join(ranges)}}}")
                lines.append(f"s{which}{d} = f32[{dims_of(dims)}] add({total}, {which}{d})")
                total = f"s{which}{d}"
        shape = f"f32[{dims_of(dims)}]"
        text = text_of(shape, "z = f32[] constant(7)", *lines, f"ROOT r = {shape} negate({total})")
        for threads in (1, 2, 5):
            executable = check(text, whole_numbers(rng, "f32", dims), num_threads=threads)
            assert dims[-1] < 32 or kernels(executable) == ["loop"]


@pytest.mark.parametrize("gap", [1, 2, 3, 7])
@pytest.mark.parametrize("dtype", ["f32", "f64", "bf16", "s8", "pred", "c64"])
def test_gaps_between_elements(check: Any, kernels: Any, rng: np.random.Generator, dtype: str, gap: int) -> None:
    for dims, padding in (
        ((700,), "3_5"),
        ((3, 41), "1_0 0_2"),
        ((2, 1), "0_1 9_9"),
        ((33,), "-2_40"),
        ((4, 64), "0_0 -1_-1"),
    ):
        amounts = [tuple(map(int, one.split("_"))) for one in padding.split()]
        sizes = [n + (n - 1) * gap + low + high for n, (low, high) in zip(dims, amounts, strict=True)]
        lines = [f"z = {dtype}[] parameter(1)", f"c = {dtype}[{dims_of(dims)}] copy(x)"]
        around = "x".join(f"{low}_{high}_{gap}" for low, high in amounts)
        text = text_of(
            f"{dtype}[{dims_of(dims)}]", *lines, f"ROOT r = {dtype}[{dims_of(sizes)}] pad(c, z), padding={around}"
        )
        assert kernels(check(text, whole_numbers(rng, dtype, dims), whole_numbers(rng, dtype, ()))) == ["loop"]


@pytest.mark.parametrize(("step", "size", "stride"), [(2, 3, 1), (3, 2, 1), (4, 3, 2), (2, 1, 3), (5, 3, 1), (2, 5, 1)])
@pytest.mark.parametrize("dims", [(7, 9, 5), (1, 40, 33), (300, 3, 40), (2, 1, 17)], ids=str)
def test_windows_over_what_lies_apart(
    check: Any, rng: np.random.Generator, dims: tuple[int, ...], step: int, size: int, stride: int
) -> None:
    """By padding between elements and by base dilation, along the first dimension, which tasks divide, and another."""
    (h, w, c), low = dims, (2, -1)
    apart = [(h - 1) * step + 1, (w - 1) * step + 1]
    padded = [max(n + low[d] + size, size) for d, n in enumerate(apart)]
    results = [(n - size) // stride + 1 for n in padded]
    highs = [n - low[d] - apart[d] for d, n in enumerate(padded)]
    result, z = f"s32[{results[0]},{results[1]},{c}]", "z = s32[] constant(0)"
    strides = f"stride={stride}x{stride}x1"
    sides = f"{low[0]}_{highs[0]}_{step - 1}x{low[1]}_{highs[1]}_{step - 1}x0_0"
    pad = f"p = s32[{padded[0]},{padded[1]},{c}] pad(x, z), padding={sides}"
    window = f"reduce-window(p, z), window={{size={size}x{size}x1 {strides}}}, to_apply=add"
    outer = f"pad={low[0]}_{highs[0]}x{low[1]}_{highs[1]}x0_0 lhs_dilate={step}x{step}x1"
    dilated = f"reduce-window(x, z), window={{size={size}x{size}x1 {strides} {outer}}}, to_apply=add"
    add = "add {\n  a = s32[] parameter(0)\n  b = s32[] parameter(1)\n  ROOT r = s32[] add(a, b)\n}\n"
    x = rng.integers(-99, 99, dims).astype(np.int32)
    for lines in ([pad, f"ROOT r = {result} {window}"], [f"ROOT r = {result} {dilated}"]):
        text = text_of(f"s32[{dims_of(dims)}]", z, *lines).replace("ENTRY", add + "ENTRY")
        for threads in (1, 2, 5):
            check(text, x, num_threads=threads)


@pytest.mark.parametrize("dims", [(5000,), (4, 50), (3, 5, 33)], ids=str)
def test_an_update_at_a_known_place_splits_the_loop(
    check: Any, kernels: Any, rng: np.random.Generator, dims: tuple[int, ...]
) -> None:
    shape, inner = f"f32[{dims_of(dims)}]", f"f32[{dims_of([n - 2 for n in dims])}]"
    ranges = ", ".join(f"[1:{n - 1}]" for n in dims)
    lines = [f"i = {inner} slice(x), slice={{{ranges}}}", f"n = {inner} negate(i)", "one = s32[] constant(1)"]
    lines += [f"u = {shape} dynamic-update-slice(x, n, {', '.join(['one'] * len(dims))})"]
    text = text_of(shape, *lines, f"ROOT r = {shape} abs(u)")
    executable = check(text, whole_numbers(rng, "f32", dims))
    assert set(kernels(executable)) <= {"loop", "update in place"}


def test_rows_are_reduced_rather_than_split(check: Any, kernels: Any, rng: np.random.Generator) -> None:
    """x - max(x) beside a rotation of another array: the reduction stays in the kernel, the rotation before it."""
    lines = ["y = f32[6,40] parameter(1)", *rotated("a", "y", "f32", (6, 40), 1, 1), "low = f32[] constant(-inf)"]
    lines += ["m = f32[6] reduce(x, low), dimensions={1}, to_apply=greatest"]
    lines += ["b = f32[6,40] broadcast(m), dimensions={0}", "d = f32[6,40] subtract(x, b)"]
    text = text_of("f32[6,40]", *lines, "ROOT r = f32[6,40] add(d, a)")
    greatest = "greatest { p = f32[] parameter(0)\n q = f32[] parameter(1)\n ROOT m = f32[] maximum(p, q) }\n"
    text = text.replace("ENTRY", f"{greatest}ENTRY")
    arguments = [whole_numbers(rng, "f32", (6, 40)) for _ in range(2)]
    assert kernels(check(text, *arguments)) == ["concatenate", "row"]


def test_a_few_elements_are_computed_one_by_one(check: Any, kernels: Any, rng: np.random.Generator) -> None:
    """Three numbers, stacked and added: stored one by one and loaded together, they would be waited for."""
    lines = [f"p{n} = f32[1] slice(x), slice={{[{n}:{n + 1}]}}" for n in range(3)]
    lines += ["a = f32[1] multiply(p0, p1)", "b = f32[1] subtract(p2, p0)", "c = f32[1] add(p1, p2)"]
    text = text_of("f32[3]", *lines, "j = f32[3] concatenate(a, b, c), dimensions={0}", "ROOT r = f32[3] add(x, j)")
    assert kernels(check(text, whole_numbers(rng, "f32", (3,)))) == ["loop"]


def test_rotations_and_what_is_reduced_of_them(check: Any, kernels: Any, rng: np.random.Generator) -> None:
    """A step of Jacobi's method and how much it changes: the step is a loop of its own, not part of the reduction's."""
    lines = [*rotated("a", "x", "f32", (6, 40), 1, 1), *rotated("b", "x", "f32", (6, 40), -1, 0)]
    lines += ["n = f32[6,40] add(a, b)", "d = f32[6,40] subtract(n, x)", "low = f32[] constant(-inf)"]
    lines += ["m = f32[6] reduce(d, low), dimensions={1}, to_apply=greatest"]
    text = text_of("f32[6,40]", *lines, "ROOT r = (f32[6,40], f32[6]) tuple(n, m)")
    greatest = "greatest { p = f32[] parameter(0)\n q = f32[] parameter(1)\n ROOT m = f32[] maximum(p, q) }\n"
    executable = check(text.replace("ENTRY", f"{greatest}ENTRY"), whole_numbers(rng, "f32", (6, 40)))
    assert kernels(executable) == ["loop", "row"]


def test_ever_more_seams_are_not_split(check: Any, kernels: Any, rng: np.random.Generator) -> None:
    lines, total = [], "x"
    for by in range(1, 25):
        lines += [*rotated(f"a{by}_", "x", "f32", (3, 400), by, 1), f"s{by} = f32[3,400] add({total}, a{by}_)"]
        total = f"s{by}"
    text = text_of("f32[3,400]", *lines, f"ROOT r = f32[3,400] negate({total})")
    found = kernels(check(text, whole_numbers(rng, "f32", (3, 400))))
    assert found.count("concatenate") == 9
    assert found[-1] == "loop"


@pytest.mark.parametrize("steps", [1, 2, 3, 4, 5, 8])
@pytest.mark.parametrize("result", ["r", "d"])
def test_steps_of_a_stencil_are_not_copied(check: Any, rng: np.random.Generator, steps: int, result: str) -> None:
    """One state, or two in turn; iterations that are left over by unrolling run before the loop."""
    dims, state = (3, 37), "(s32[], f32[3,37], f32[3,37])"
    lines = ["a = f32[3,37] get-tuple-element(s), index=1", "b = f32[3,37] get-tuple-element(s), index=2"]
    lines += [*rotated("u", "a", "f32", dims, 1, 0), *rotated("v", "a", "f32", dims, -1, 1)]
    lines += ["r = f32[3,37] subtract(u, v)", "d = f32[3,37] subtract(r, b)"]
    body = "\n  ".join(lines)
    text = f"""HloModule m
condition {{ s = {state} parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant({steps})
  ROOT r = pred[] compare(i, n), direction=LT }}
body {{ s = {state} parameter(0)
  i = s32[] get-tuple-element(s), index=0
  one = s32[] constant(1)
  j = s32[] add(i, one)
  {body}
  ROOT t = {state} tuple(j, {result}, {"a" if result == "d" else "b"}) }}
ENTRY e {{ x = f32[3,37] parameter(0)
  y = f32[3,37] parameter(1)
  z = s32[] constant(0)
  t = {state} tuple(z, x, y)
  ROOT r = {state} while(t), condition=condition, body=body }}"""
    arguments = [whole_numbers(rng, "f32", dims) for _ in range(2)]
    for threads in (1, 2):
        executable = check(text, *arguments, num_threads=threads)
        copied = [d.subject for d in executable.decisions() if d.decided_by == "copy-insertion" and "still" in d.reason]
        assert steps < 4 or not copied


@pytest.mark.parametrize("dims", [(5000,), (4, 50), (7, 9, 33), (3, 3, 3)], ids=str)
def test_an_array_is_rewritten_inside_a_border(
    check: Any, kernels: Any, rng: np.random.Generator, dims: tuple[int, ...]
) -> None:
    """The sum of the neighbours at both ends of the diagonal, with the border kept, in one kernel."""
    shape, inner = f"f32[{dims_of(dims)}]", f"f32[{dims_of([n - 2 for n in dims])}]"
    before, behind = (", ".join(f"[{begin}:{n - 2 + begin}]" for n in dims) for begin in (0, 2))
    lines = ["c = s32[] constant(1)", f"a = {inner} slice(x), slice={{{before}}}"]
    lines += [f"b = {inner} slice(x), slice={{{behind}}}", f"s = {inner} add(a, b)"]
    text = text_of(shape, *lines, f"ROOT r = {shape} dynamic-update-slice(x, s, {', '.join(['c'] * len(dims))})")
    for threads in (1, 2, 5):
        executable = check(text, whole_numbers(rng, "f32", dims), num_threads=threads)
        is_most = 2 * np.prod([n - 2 for n in dims]) >= np.prod(dims)
        assert not is_most or kernels(executable) == ["loop"]
