"""Applies a complex function by each way there is: the evaluator, and compiled code for several instruction sets."""

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest

from xlalite.backends.base import CompileOptions, get_backend
from xlalite.hlo.evaluation.evaluator import evaluate
from xlalite.hlo.text import parse
from xlalite.hlo.types.dtype import DType
from xlalite.passes.core.debug_options import DebugOptions

WAYS = ("evaluator", "AVX512", "AVX2", "SSE2")
BINARY = ("multiply", "divide", "power", "atan2")


def _program(opcodes: tuple[str, ...], dtype: DType, count: int) -> str:
    """All the functions of the same operands."""
    t, part = f"{dtype.value}[{count}]", f"{dtype.component.value}[{count}]"
    results = [part if opcode == "abs" else t for opcode in opcodes]
    lines = [
        f"r{n} = {result} {opcode}({'x, y' if opcode in BINARY else 'x'})"
        for n, (opcode, result) in enumerate(zip(opcodes, results, strict=True))
    ]
    names = ", ".join(f"r{n}" for n in range(len(opcodes)))
    body = "\n  ".join([f"x = {t} parameter(0)", f"y = {t} parameter(1)", *lines])
    return f"HloModule m\nENTRY e {{\n  {body}\n  ROOT all = ({', '.join(results)}) tuple({names}) }}"


def _compile(opcodes: tuple[str, ...], dtype: DType, count: int, isa: str) -> Callable[..., tuple[np.ndarray, ...]]:
    module = parse(_program(opcodes, dtype, count))
    executable = get_backend("cpu").compile(module, CompileOptions(debug=DebugOptions(cpu_max_isa=isa)))
    return executable  # type: ignore[return-value]


Apply = Callable[..., dict[str, np.ndarray]]


@pytest.fixture(scope="session")
def apply_complex() -> Apply:
    """`apply_complex(opcodes, way, x, y)`: each function's values, by its opcode."""
    compiled = cache(_compile)

    def apply(opcodes: tuple[str, ...], way: str, x: np.ndarray, y: np.ndarray | None = None) -> dict[str, np.ndarray]:
        operands = x, x if y is None else y
        dtype = DType.from_numpy(x.dtype)
        if way == "evaluator":
            results = evaluate(parse(_program(opcodes, dtype, x.size)), *operands)
        else:
            results = compiled(opcodes, dtype, x.size, way)(*operands)
        assert isinstance(results, tuple)
        return dict(zip(opcodes, map(np.asarray, results), strict=True))

    return apply


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest) -> str:
    """How functions are applied."""
    return str(request.param)


@pytest.fixture(params=[np.complex64, np.complex128], ids=["c64", "c128"])
def complex_type(request: pytest.FixtureRequest) -> type[np.complexfloating]:
    """The type of the numbers."""
    chosen: type[np.complexfloating] = request.param
    return chosen
