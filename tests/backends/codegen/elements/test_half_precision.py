"""f16 that machines compute with themselves: the bits are those of f32, rounded after each operation."""

from typing import Any

import numpy as np
import pytest

from xlalite.backends.base import CompileOptions, get_backend
from xlalite.backends.codegen.llvm import TargetInfo
from xlalite.hlo.text import parse
from xlalite.passes.core.debug_options import DebugOptions

PATTERNS = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 6e-8, -6e-8, 6.1e-5, 65504.0, -65504.0, 1.0, 0.3333]
ARITHMETIC = {"add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.divide}
OPERATIONS = [
    *(f"f16[$n] {opcode}(x, y)" for opcode in (*ARITHMETIC, "maximum", "minimum")),
    *(f"f16[$n] {opcode}(x)" for opcode in ("abs", "negate", "sign", "sqrt", "floor")),
    "f16[$n] clamp(y, x, w)",
    "f16[$n] clamp(low, x, high)",
    *(f"pred[$n] compare(x, y), direction={direction}" for direction in ("EQ", "NE", "LT", "LE", "GT", "GE")),
    "pred[$n] compare(x, y), direction=LT, type=TOTALORDER",
    "f16[$n] select(r0, x, y)",
    "f16[$n] add(v2, y)",
    "f32[$n] convert(v0)",
]


def program(size: int) -> str:
    """All operations; the product and the sum of it and a number are rounded each."""
    lines = [f"v{number} = {line}" for number, line in enumerate(OPERATIONS)]
    shapes = [line.split()[0] for line in OPERATIONS]
    names = [f"v{number}" for number in range(len(OPERATIONS))]
    return f"""HloModule m
ENTRY e {{
  x = f16[$n] parameter(0)
  y = f16[$n] parameter(1)
  w = f16[$n] parameter(2)
  r0 = pred[$n] compare(y, w), direction=LT
  low = f16[] constant(-1.5)
  high = f16[] constant(inf)
  {chr(10).join(lines)}
  ROOT r = ({", ".join(shapes)}) tuple({", ".join(names)})
}}""".replace("$n", str(size))


@pytest.mark.parametrize("isa", ["AVX512_BF16", "AMX"])
@pytest.mark.parametrize("size", [33, 1 << 16])
def test_bits_are_those_of_f32(check: Any, isa: str, size: int) -> None:
    rng = np.random.default_rng(size)
    special = np.array(SPECIAL, np.float16)
    others = rng.choice(special, (2, size)) if size < 100 else rng.permuted(np.stack([PATTERNS, PATTERNS]), axis=1)
    others[:, ::7] = rng.choice(special, others[:, ::7].shape)
    arguments = (rng.permutation(PATTERNS)[:size], *others)
    found = check(program(size), *arguments, debug=DebugOptions(cpu_max_isa=isa))(*arguments)
    with np.errstate(all="ignore"):
        for result, compute in zip(found, ARITHMETIC.values(), strict=False):
            wanted = compute(*(argument.astype(np.float32) for argument in arguments[:2])).astype(np.float16)
            np.testing.assert_array_equal(result, wanted)
            np.testing.assert_array_equal(np.signbit(result[wanted == 0]), np.signbit(wanted[wanted == 0]))


def test_registers_hold_halves_where_the_machine_adds_them() -> None:
    text = "HloModule m\nENTRY e { x = f16[999] parameter(0)\n ROOT r = f16[999] add(x, x) }"
    ir = get_backend("cpu").compile_to("llvm-before-optimizations", parse(text), CompileOptions()).text
    assert ("fadd <32 x half>" in ir) == TargetInfo.host().has("avx512fp16")
