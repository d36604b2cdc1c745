"""Random reduces: compiled they give the evaluator's bits, whatever is reduced, by what, and with what around it.

Any dimensions, none and all, of sizes 0 and 1 too; one to three operands; monoids in several spellings, and
computations of which only the order of elements is sure. Numbers are small integers: every order of a sum is exact.
"""

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.text import parse
from xlalite.hlo.types.literal import Value

CASES_A_MODULE = 15
SIZES = (0, 1, 1, 2, 3, 5, 8, 17, 33, 70, 140)
MAX_ELEMENTS = 3000

FLOATS = ("f32", "f64", "bf16", "f16", "f8e4m3fn")
INTEGERS = ("s32", "s64", "u8", "s8", "s4", "u4", "u32")
TYPES = (*FLOATS, *INTEGERS, "pred", "c64", "c128")

Combiner = tuple[tuple[str, ...], str]
"""Types of the accumulators; lines of the computation, for parameters a0, ..., b0, ... and results r0, ..."""


class Chance(random.Random):
    def one_of(self, choices: Any) -> Any:
        return choices[self.randrange(len(choices))]


def monoid(chance: Chance, dtype: str, k: int) -> str:
    names = {"pred": ("and", "or", "xor", "add"), "c64": ("add",), "c128": ("add",)}
    floats = ("add", "maximum", "minimum")
    exact = (*floats, "multiply", "and", "or", "xor")
    opcode = chance.one_of(names.get(dtype, floats if dtype in FLOATS else exact))
    a, b = (f"a{k}", f"b{k}") if chance.random() < 0.7 else (f"b{k}", f"a{k}")
    match chance.randrange(5):
        case 0:
            return f"c{k} = {dtype}[] {opcode}({a}, {b})\n r{k} = {dtype}[] copy(c{k})"
        case 1 if dtype in ("bf16", "f16", "s8", "u8") and opcode in floats:
            wide = "f32" if dtype in FLOATS else "s32"
            return (
                f"w{k} = {wide}[] convert({a})\n v{k} = {wide}[] convert({b})\n"
                f"c{k} = {wide}[] {opcode}(w{k}, v{k})\n r{k} = {dtype}[] convert(c{k})"
            )
        case 2 if opcode == "maximum":
            return f"c{k} = pred[] compare(a{k}, b{k}), direction=GE\n r{k} = {dtype}[] select(c{k}, a{k}, b{k})"
        case _:
            return f"r{k} = {dtype}[] {opcode}({a}, {b})"


def one_side(chance: Chance, dtype: str, k: int) -> str:
    """The first of all elements, or the last: associative, not commutative."""
    return f"r{k} = {dtype}[] copy({chance.one_of('ab')}{k})"


def first_not_zero(chance: Chance, dtype: str, k: int) -> str:
    zero = "(0, 0)" if dtype[0] == "c" else "false" if dtype == "pred" else "0"
    how = (
        f"r{k} = {dtype}[] conditional(c{k}, a{k}, b{k}), true_computation=same.{dtype}, false_computation=same.{dtype}"
    )
    if chance.random() < 0.5:
        how = f"r{k} = {dtype}[] select(c{k}, a{k}, b{k})"
    return f"z{k} = {dtype}[] constant({zero})\n c{k} = pred[] compare(a{k}, z{k}), direction=NE\n {how}"


def called(chance: Chance, dtype: str, k: int) -> str:
    opcode = "or" if dtype == "pred" else "add"
    return f"r{k} = {dtype}[] call(a{k}, b{k}), to_apply={opcode}.{dtype}"


def looped(chance: Chance, dtype: str, k: int) -> str:
    return f"t{k} = ({dtype}[], {dtype}[], pred[]) tuple(a{k}, b{k}, yes)\n" + (
        f"l{k} = ({dtype}[], {dtype}[], pred[]) while(t{k}), condition=more.{dtype}, body=once.{dtype}\n"
        f"r{k} = {dtype}[] get-tuple-element(l{k}), index=0"
    )


def arg_max(chance: Chance, dtype: str, index: str) -> Combiner:
    return (
        (dtype, index),
        f"""gt = pred[] compare(a0, b0), direction=GT
 nan = pred[] compare(a0, a0), direction=NE
 first = pred[] or(gt, nan)
 eq = pred[] compare(a0, b0), direction=EQ
 lt = pred[] compare(a1, b1), direction=LT
 tie = pred[] and(eq, lt)
 second = pred[] or(first, tie)
 r0 = {dtype}[] select(first, a0, b0)
 r1 = {index}[] select(second, a1, b1)""",
    )


def composition(chance: Chance, dtype: str) -> Combiner:
    """Of maps x -> a0 x + a1, applied one after the other, and how many they are."""
    return (
        (dtype, dtype, "s32"),
        f"""r0 = {dtype}[] multiply(a0, b0)
 m = {dtype}[] multiply(a1, b0)
 r1 = {dtype}[] add(m, b1)
 r2 = s32[] add(a2, b2)""",
    )


def combiner(chance: Chance) -> Combiner:
    kind = chance.random()
    if kind < 0.2:
        return arg_max(chance, chance.one_of(("f32", "bf16", "s32", "f64")), chance.one_of(("s32", "u8", "s64")))
    if kind < 0.3:
        return composition(chance, chance.one_of(("s32", "u8", "s64", "s4")))
    dtypes = tuple(chance.one_of(TYPES) for _ in range(chance.one_of((1, 1, 1, 2, 3))))
    spellings = (monoid, monoid, monoid, one_side, first_not_zero, called, looped)
    if chance.random() < 0.6:
        spellings = (monoid,)
    return dtypes, "\n ".join(chance.one_of(spellings)(chance, dtype, k) for k, dtype in enumerate(dtypes))


def computations(dtype: str) -> str:
    """What combiners call."""
    opcode = "or" if dtype == "pred" else "add"
    state = f"({dtype}[], {dtype}[], pred[])"
    return f"""same.{dtype} {{ ROOT x = {dtype}[] parameter(0) }}
{opcode}.{dtype} {{ x = {dtype}[] parameter(0)
 y = {dtype}[] parameter(1)
 ROOT s = {dtype}[] {opcode}(y, x) }}
more.{dtype} {{ s = {state} parameter(0)
 ROOT m = pred[] get-tuple-element(s), index=2 }}
once.{dtype} {{ s = {state} parameter(0)
 x = {dtype}[] get-tuple-element(s), index=0
 y = {dtype}[] get-tuple-element(s), index=1
 z = {dtype}[] {opcode}(x, y)
 no = pred[] constant(false)
 ROOT t = {state} tuple(z, y, no) }}
"""


class ModuleOfReduces:
    """Writes a module of independent reduces."""

    def __init__(self, chance: Chance, cases: int) -> None:
        self.chance = chance
        self.functions: list[str] = []
        self.lines: list[str] = []
        self.parameters: list[tuple[str, tuple[int, ...]]] = []
        self.results: list[tuple[str, str]] = []
        for number in range(cases):
            self._case(number)

    def text(self) -> str:
        helpers = "".join(computations(dtype) for dtype in TYPES if f".{dtype}" in "".join(self.functions))
        shapes = ", ".join(shape for _, shape in self.results)
        root = f"ROOT t = ({shapes}) tuple({', '.join(name for name, _ in self.results)})"
        return (
            "HloModule m\n"
            + helpers
            + "\n".join(self.functions)
            + "\nENTRY e {\n"
            + "\n".join([*self.lines, root, "}"])
        )

    def _dims(self) -> tuple[int, ...]:
        while True:
            dims = tuple(self.chance.one_of(SIZES) for _ in range(self.chance.randrange(5)))
            if np.prod(dims) <= MAX_ELEMENTS:
                return dims

    def _parameter(self, dtype: str, dims: tuple[int, ...]) -> str:
        self.parameters.append((dtype, dims))
        return self._line(f"{shape_of(dtype, dims)} parameter({len(self.parameters) - 1})")

    def _line(self, text: str) -> str:
        name = f"x{len(self.lines)}"
        self.lines.append(f" {name} = {text}")
        return name

    def _array(self, dtype: str, dims: tuple[int, ...]) -> str:
        """A parameter, or what a producer makes that might become part of the kernel."""
        chance, shape = self.chance, shape_of(dtype, dims)
        match chance.randrange(8):
            case 0 if dims and dtype != "pred":
                return self._line(f"{shape} iota(), iota_dimension={chance.randrange(len(dims))}")
            case 1 if dims:
                kept = sorted(chance.sample(range(len(dims)), chance.randrange(len(dims))))
                small = self._parameter(dtype, tuple(dims[d] for d in kept))
                return self._line(f"{shape} broadcast({small}), dimensions={braced(kept)}")
            case 2 if len(dims) > 1:
                order = chance.sample(range(len(dims)), len(dims))
                turned = [0] * len(dims)
                for new, old in enumerate(order):
                    turned[old] = dims[new]
                source = self._parameter(dtype, tuple(turned))
                return self._line(f"{shape} transpose({source}), dimensions={braced(order)}")
            case 3:
                source = self._parameter(dtype, (int(np.prod(dims)),))
                return self._line(f"{shape} reshape({source})")
            case 4 if dtype in ("f32", "s32", "f64"):
                source = self._parameter("s8", dims)
                return self._line(f"{shape} convert({source})")
            case 5 if dtype not in ("pred", "u4", "s4"):
                source = self._parameter(dtype, dims)
                return self._line(f"{shape} negate({source})")
            case _:
                return self._parameter(dtype, dims)

    def _case(self, number: int) -> None:
        chance, dims = self.chance, self._dims()
        dtypes, body = combiner(chance)
        reduced = sorted(chance.sample(range(len(dims)), chance.randint(0, len(dims))))
        arrays = [self._array(dtype, dims) for dtype in dtypes]
        starts = [self._parameter(dtype, ()) for dtype in dtypes]
        kept = tuple(dims[d] for d in range(len(dims)) if d not in reduced)
        shapes = [shape_of(dtype, kept) for dtype in dtypes]
        result = shapes[0] if len(shapes) == 1 else f"({', '.join(shapes)})"
        self._function(number, dtypes, body)
        operands = ", ".join([*arrays, *starts])
        name = self._line(f"{result} reduce({operands}), dimensions={braced(reduced)}, to_apply=combine{number}")
        if len(dtypes) > 1:
            picked = self._line(f"{shapes[0]} get-tuple-element({name}), index=0")
            self.results.append((name, result))
        else:
            picked = name
        if chance.random() < 0.4:
            # What uses the result for each element joins the kernel, or must stay out of it.
            rows = braced([d for d in range(len(dims)) if d not in reduced])
            spread = self._line(f"{shape_of(dtypes[0], dims)} broadcast({picked}), dimensions={rows}")
            opcode = "xor" if dtypes[0] == "pred" else "add"
            picked = self._line(f"{shape_of(dtypes[0], dims)} {opcode}({arrays[0]}, {spread})")
            self.results.append((picked, shape_of(dtypes[0], dims)))
        elif len(dtypes) == 1:
            self.results.append((picked, shapes[0]))

    def _function(self, number: int, dtypes: tuple[str, ...], body: str) -> None:
        parameters = [
            f"{side}{k} = {dtype}[] parameter({k + offset})"
            for side, offset in (("a", 0), ("b", len(dtypes)))
            for k, dtype in enumerate(dtypes)
        ]
        yes = ["yes = pred[] constant(true)"] if "yes" in body else []
        if len(dtypes) == 1:
            root = body.replace("r0 =", "ROOT r0 =")
        else:
            names = ", ".join(f"r{k}" for k in range(len(dtypes)))
            root = f"{body}\n ROOT t = ({', '.join(f'{d}[]' for d in dtypes)}) tuple({names})"
        self.functions.append(f"combine{number} {{\n " + "\n ".join([*parameters, *yes, root]) + " }")


def shape_of(dtype: str, dims: tuple[int, ...]) -> str:
    return f"{dtype}[{','.join(map(str, dims))}]"


def braced(numbers: Any) -> str:
    return "{" + ",".join(map(str, numbers)) + "}"


def small_arguments(module: HloModule, seed: int) -> list[Value]:
    rng = np.random.default_rng(seed)
    values: list[Value] = []
    for parameter in module.entry_computation.parameters:
        dtype, dims = parameter.shape.dtype, parameter.shape.dims
        numbers = rng.integers(0 if dtype.is_unsigned else -2, 3, dims)
        array = (rng.random(dims) < 0.5) if dtype.value == "pred" else numbers.astype(dtype.numpy)
        values.append(np.asarray(array))
    return values


def check_reduces(seed: int, cases: int, check: Callable[..., object]) -> None:
    module = parse(ModuleOfReduces(Chance(seed), cases).text())
    check(module, *small_arguments(module, seed), use_cache=False)


@pytest.mark.parametrize("seed", range(10))
def test_random_reduces(seed: int, check: Any) -> None:
    check_reduces(seed, CASES_A_MODULE, check)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 1200))
def test_more_random_reduces(seed: int, check: Any) -> None:
    check_reduces(seed, CASES_A_MODULE, check)
