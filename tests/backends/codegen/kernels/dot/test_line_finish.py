"""What follows products line by line, of any arrays beside them, and what other arrays there may be."""

import random

import numpy as np
import pytest

from xlalite.backends.base import CompileOptions, get_backend
from xlalite.hlo import parse
from xlalite.hlo.evaluation.evaluator import evaluate

SIZES = (1, 2, 3, 7, 16, 17, 33, 70)
OPERATIONS = ("add", "multiply", "maximum", "subtract")


def followed(seed: int) -> str:
    """A product or a convolution, and operations with arrays that have any of the result's dimensions, and scalars."""
    chance = random.Random(seed)
    dtype = chance.choice(("f32", "f32", "f64", "bf16", "s32", "f16"))
    k = chance.choice((3, 20, 300))
    if seed % 3:
        batch = [2, 3][: chance.choice((0, 0, 1, 2))]
        left, right = ([chance.choice(SIZES) for _ in range(chance.choice((0, 1, 1, 2)))] for _ in range(2))
        places = ",".join(map(str, range(len(batch))))
        attributes = f"lhs_batch_dims={{{places}}}, rhs_batch_dims={{{places}}}, lhs_contracting_dims={{{len(batch)}}}"
        attributes += f", rhs_contracting_dims={{{len(batch)}}}"
        lhs, rhs, dims, opcode = [*batch, k, *left], [*batch, k, *right], [*batch, *left, *right], "dot"
    else:
        n, sides, c, f = 2, chance.choice((1, 5, 13)), min(k, 64), chance.choice(SIZES)
        lhs, rhs, dims, opcode = [n, sides, sides, c], [3, 3, c, f], [n, sides, sides, f], "convolution"
        labels = "b01f_01io->b01f"
        if chance.random() < 0.4:
            lhs, rhs, dims, labels = [n, c, sides, sides], [f, c, 3, 3], [n, f, sides, sides], "bf01_oi01->bf01"
        attributes = f"window={{size=3x3 pad=1_1x1_1}}, dim_labels={labels}"
    shape, results = f"{dtype}[{','.join(map(str, dims))}]", []
    lines = [
        f"p{number} = {dtype}[{','.join(map(str, one))}] parameter({number})" for number, one in enumerate((lhs, rhs))
    ]
    lines.append(f"v0 = {shape} {opcode}(p0, p1), {attributes}")
    for number in range(1, chance.choice((2, 3, 4))):
        seen = [dim for dim in range(len(dims)) if chance.random() < 0.5]
        seen = chance.choice((seen, list(range(len(dims))), [len(dims) - 1] if dims else [], []))
        own = f"{dtype}[{','.join(str(dims[dim]) for dim in seen)}]"
        lines.append(f"p{number + 1} = {own} parameter({number + 1})")
        lines.append(f"b{number} = {shape} broadcast(p{number + 1}), dimensions={{{','.join(map(str, seen))}}}")
        sides = [f"v{number - 1}", f"b{number}"]
        chance.shuffle(sides)
        lines.append(f"v{number} = {shape} {chance.choice(OPERATIONS)}({', '.join(sides)})")
        results.append(f"v{number}")
    if chance.random() < 0.3:
        results.append("v0")
    parts = results[-2:]
    lines.append(f"ROOT r = ({', '.join([shape] * len(parts))}) tuple({', '.join(parts)})")
    return "HloModule m\nENTRY e {\n" + "\n".join(f"  {line}" for line in lines) + "\n}"


def require_as_evaluated(seed: int) -> None:
    text, rng = followed(seed), np.random.default_rng(seed)
    parameters = parse(text).entry_computation.parameters
    arrays = [rng.integers(-2, 3, one.shape.dims).astype(one.shape.dtype.numpy) for one in parameters]
    expected = evaluate(parse(text), *arrays)
    for threads in (1, 2, 5) if seed % 10 == 0 else (1 + seed % 2,):
        options = CompileOptions(num_threads=threads, use_cache=False)
        found = get_backend("cpu").compile(parse(text), options)(*arrays)
        for mine, theirs in zip(found, expected, strict=True):
            np.testing.assert_array_equal(mine.astype(np.float64), theirs.astype(np.float64), err_msg=f"{seed}\n{text}")


@pytest.mark.parametrize("first", range(0, 120, 20))
def test_products_with_any_arrays_beside_them(first: int) -> None:
    for seed in range(first, first + 20):
        require_as_evaluated(seed)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(120, 2120, 50))
def test_products_with_many_arrays_beside_them(first: int) -> None:
    for seed in range(first, first + 50):
        require_as_evaluated(seed)
