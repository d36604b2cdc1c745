"""How workloads state what they compute: HLO text or functions of arrays; random arguments."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from benchmarks.harness import Contest, contest

import xlalite as xl
from xlalite.passes.core.debug_options import DebugOptions

_SCALARS = {
    "add": "{t}[] add(a, b)",
    "mul": "{t}[] multiply(a, b)",
    "max": "{t}[] maximum(a, b)",
    "min": "{t}[] minimum(a, b)",
    "ge": "pred[] compare(a, b), direction=GE",
    "lt": "pred[] compare(a, b), direction=LT",
}


def text_contest(
    body: str,
    arguments: Sequence[np.ndarray],
    *,
    computations: str = "",
    debug: DebugOptions | None = None,
    **options: Any,
) -> Contest:
    """A contest of HLO text: the lines of the entry.

    `add_f32`, `max_s32` and the like may be applied without being written; so may `lt_f32_1`, which compares the first
    of two pairs.
    """
    text = f"HloModule benchmark\n{_scalar_functions(computations + body)}\n{computations}\nENTRY e {{\n{body}}}\n"
    executable = xl.compile(xl.hlo.parse(text), options=xl.CompileOptions(debug=debug or DebugOptions()))
    return contest(executable, arguments, executable, **options)


def function_contest(
    own: Callable[..., Any] | None, arguments: Sequence[np.ndarray], plain: Any = None, **options: Any
) -> Contest:
    """A contest of a function that `xl.jit` compiles: `own`, or what `plain` makes for NumPy."""
    compiled = xl.jit(own if own is not None else plain(np))
    return contest(compiled, arguments, compiled.executable(*arguments), plain=plain, **options)


def onnx_program(inputs: str, outputs: str, lines: str) -> Callable[[Any], Callable[..., Any]]:
    """What makes a function of ONNX text for onnxruntime: `float[2,3] x` and the like, and `y = Softmax(x)`."""

    def make(onnxruntime: Any) -> Callable[..., Any]:
        from onnx.parser import parse_model

        text = f'<ir_version: 8, opset_import: ["": 17]>\nmain ({inputs}) => ({outputs}) {{ {lines} }}'
        options = onnxruntime.SessionOptions()
        # Its threads would otherwise watch for work while it is another's turn.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        session = onnxruntime.InferenceSession(
            parse_model(text).SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
        names = [each.name for each in session.get_inputs()]
        return lambda *arrays: session.run(None, dict(zip(names, arrays, strict=True)))

    return make


def counts_below(state: str, limit: int, name: str = "below") -> str:
    """The condition of a loop whose state, a tuple of that shape, begins with the number of the iteration."""
    return f"""{name} {{
  s = {state} parameter(0)
  n = s32[] get-tuple-element(s), index=0
  limit = s32[] constant({limit})
  ROOT r = pred[] compare(n, limit), direction=LT
}}
"""


def floats(*shapes: tuple[int, ...], seed: int = 0) -> list[np.ndarray]:
    """Positive random numbers, far enough from zero for logarithms and divisions."""
    rng = np.random.default_rng(seed)
    return [np.abs(rng.standard_normal(shape, np.float32)) + np.float32(0.1) for shape in shapes]


def signed(*shapes: tuple[int, ...], seed: int = 0) -> list[np.ndarray]:
    """Normally distributed random numbers."""
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(shape, np.float32) for shape in shapes]


def indices(bound: int, *shape: int, seed: int = 1) -> np.ndarray:
    """Random numbers below a bound."""
    return np.random.default_rng(seed).integers(0, bound, shape, np.int32)


def dims(shape: Sequence[int]) -> str:
    """Sizes as HLO writes them."""
    return ",".join(map(str, shape))


def _scalar_functions(text: str) -> str:
    """The functions of scalars that a text applies."""
    lines = []
    for name in sorted(set(re.findall(r"(?:to_apply|select|scatter)=(\w+)", text))):
        opcode, *rest_of_name = name.split("_")
        if opcode not in _SCALARS:
            continue
        dtype, *pairs = rest_of_name
        rest = "  c = s32[] parameter(2)\n  d = s32[] parameter(3)\n" if pairs else ""
        root = _SCALARS[opcode].format(t=dtype)
        lines.append(
            f"{name} {{\n  a = {dtype}[] parameter(0)\n  b = {dtype}[] parameter(1)\n{rest}  ROOT r = {root} }}"
        )
    return "\n".join(lines)
