"""HLO texts of any size, one form each: what tests of compile time grow."""

import random
from collections.abc import Callable

_SUM = "sum { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT r = f32[] add(a, b) }"


def _module(entry: list[str], *computations: str) -> str:
    """A module whose entry's last instruction is the root."""
    *lines, last = entry
    return "\n".join(["HloModule m", *computations, "ENTRY e {", *lines, f"ROOT {last}", "}"])


def _tuple(names: list[str], shape: str = "f32[64]") -> str:
    return f"t = ({', '.join([shape] * len(names))}) tuple({', '.join(names)})"


def chain(n: int) -> str:
    """Elementwise operations, one after another."""
    names = ("add", "multiply", "subtract", "maximum")
    lines = [f"v{i} = f32[64] {names[i % 4]}(v{i - 1}, p)" for i in range(1, n)]
    return _module(["v0 = f32[64] parameter(0)", "p = f32[64] parameter(1)", *lines])


def blocks(n: int) -> str:
    """Blocks of a tanh, a row sum and its broadcast."""
    lines = ["v0 = f32[8,16] parameter(0)", "z = f32[] constant(0)"]
    for i in range(1, n // 4 + 1):
        lines += [
            f"t{i} = f32[8,16] tanh(v{i - 1})",
            f"r{i} = f32[8] reduce(t{i}, z), dimensions={{1}}, to_apply=sum",
            f"b{i} = f32[8,16] broadcast(r{i}), dimensions={{0}}",
            f"v{i} = f32[8,16] subtract(t{i}, b{i})",
        ]
    return _module(lines, _SUM)


def mixed(n: int) -> str:
    """A random graph of elementwise operations in which each value is used twice."""
    chance = random.Random(8)
    lines = [f"p{i} = f32[64] parameter({i})" for i in range(4)]
    free = [f"p{i}" for i in range(4)] * 2
    for i in range(n):
        picked = {free.pop(chance.randrange(len(free))): None for _ in range(1 if i % 3 == 0 else 2)}
        # The other use of a value is another operation, so that no two are equal.
        unary = "tanh" if free.count(next(iter(picked))) else "sine"
        opcode = unary if len(picked) == 1 else chance.choice(("add", "multiply"))
        lines.append(f"v{i} = f32[64] {opcode}({', '.join(picked)})")
        free += [f"v{i}"] * 2
    left = list(dict.fromkeys(free))
    # XLA, too, is to read it, which has a type `s4`.
    lines += [f"sum{i} = f32[64] add({f'sum{i - 1}' if i > 1 else left[0]}, {left[i]})" for i in range(1, len(left))]
    return _module(lines)


def outputs(n: int) -> str:
    """A tuple of results that differ in a constant."""
    lines = ["p = f32[64] parameter(0)"]
    for i in range(n):
        lines += [f"c{i} = f32[] constant({i}.5)", f"b{i} = f32[64] broadcast(c{i}), dimensions={{}}"]
        lines.append(f"o{i} = f32[64] multiply(p, b{i})")
    return _module([*lines, _tuple([f"o{i}" for i in range(n)])])


def cumulated_outputs(n: int) -> str:
    """Operations one after another, each of them a result."""
    names = ("tanh", "negate", "abs")
    lines = [f"v{i} = f32[64] {names[i % 3]}(v{i - 1})" for i in range(1, n)]
    return _module(["v0 = f32[64] parameter(0)", *lines, _tuple([f"v{i}" for i in range(1, n)])])


def training_step(n: int) -> str:
    """Parameters, gradients and one rate: as many results that all read the rate."""
    lines = ["rate = f32[] parameter(0)", "r = f32[64] broadcast(rate), dimensions={}"]
    for i in range(n):
        lines += [f"p{i} = f32[64] parameter({2 * i + 1})", f"g{i} = f32[64] parameter({2 * i + 2})"]
        lines += [f"m{i} = f32[64] multiply(g{i}, r)", f"o{i} = f32[64] subtract(p{i}, m{i})"]
    return _module([*lines, _tuple([f"o{i}" for i in range(n)])])


def concatenation(n: int) -> str:
    """One concatenation of slices."""
    lines = [f"s{i} = f32[4] slice(p), slice={{[{i}:{i + 4}]}}" for i in range(n)]
    pieces = ", ".join(f"s{i}" for i in range(n))
    root = f"t = f32[{4 * n}] concatenate({pieces}), dimensions={{0}}"
    return _module([f"p = f32[{n + 4}] parameter(0)", *lines, root])


def parameters(n: int) -> str:
    """The sum of many parameters."""
    lines = [f"p{i} = f32[64] parameter({i})" for i in range(n)]
    return _module([*lines, "s0 = f32[64] copy(p0)", *(f"s{i} = f32[64] add(s{i - 1}, p{i})" for i in range(1, n))])


def readers(n: int) -> str:
    """One value that many reductions need."""
    lines = ["p = f32[8,16] parameter(0)", "z = f32[] constant(0)", "y = f32[8,16] tanh(p)"]
    for i in range(n):
        lines += [f"c{i} = f32[] constant({i}.5)", f"b{i} = f32[8,16] broadcast(c{i}), dimensions={{}}"]
        lines += [f"m{i} = f32[8,16] multiply(y, b{i})"]
        lines += [f"r{i} = f32[8] reduce(m{i}, z), dimensions={{1}}, to_apply=sum"]
    return _module([*lines, _tuple([f"r{i}" for i in range(n)], "f32[8]")], _SUM)


def updates(n: int) -> str:
    """Updates in place, each of what another slice reads."""
    lines = [f"v0 = f32[{n + 4}] broadcast(x), dimensions={{}}"]
    for i in range(1, n):
        lines += [
            f"k{i} = s32[] constant({i})",
            f"w{i} = f32[4] dynamic-slice(v{i - 1}, k{i}), dynamic_slice_sizes={{4}}",
        ]
        lines += [f"a{i} = f32[4] sort(w{i}), dimensions={{0}}, to_apply=less"]
        lines += [f"v{i} = f32[{n + 4}] dynamic-update-slice(v{i - 1}, a{i}, k{i})"]
    less = "less { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT r = pred[] compare(a, b), direction=LT }"
    return _module(["x = f32[] parameter(0)", *lines], less)


_STATE = "(s32[], f32[4])"


def _loop(name: str, step: str, start: int = 0) -> list[str]:
    """Condition and body of a loop that does a step; `x` becomes `y`."""
    opened = f"s = {_STATE} parameter(0)\n i = s32[] get-tuple-element(s), index=0"
    return [
        f"c{name} {{ {opened}\n n = s32[] constant({start + 40})\n ROOT r = pred[] compare(i, n), direction=LT }}",
        f"b{name} {{ {opened}\n x = f32[4] get-tuple-element(s), index=1\n one = s32[] constant(1)\n"
        f" j = s32[] add(i, one)\n {step}\n ROOT t = {_STATE} tuple(j, y) }}",
    ]


def loops(n: int) -> str:
    """Loops one after another."""
    computations = [text for i in range(n) for text in _loop(str(i), "y = f32[4] tanh(x)", i)]
    lines = ["x0 = f32[4] parameter(0)", "z = s32[] constant(0)"]
    for i in range(n):
        lines += [f"q{i} = {_STATE} tuple(z, x{i})", f"w{i} = {_STATE} while(q{i}), condition=c{i}, body=b{i}"]
        lines += [f"x{i + 1} = f32[4] get-tuple-element(w{i}), index=1"]
    return _module(lines, *computations)


def wide_loop(n: int) -> str:
    """One loop that changes every array of a large state."""
    shape = f"(s32[], {', '.join(['f32[16]'] * n)})"
    opened = f"s = {shape} parameter(0)\n i = s32[] get-tuple-element(s), index=0"
    condition = f"c {{ {opened}\n k = s32[] constant(9)\n ROOT r = pred[] compare(i, k), direction=LT }}"
    body = [f"b {{ {opened}", "one = s32[] constant(1)", "j = s32[] add(i, one)"]
    for i in range(n):
        body += [f"x{i} = f32[16] get-tuple-element(s), index={i + 1}", f"y{i} = f32[16] tanh(x{i})"]
    body += [f"ROOT t = {shape} tuple(j, {', '.join(f'y{i}' for i in range(n))}) }}"]
    lines = ["z = s32[] constant(0)", *(f"p{i} = f32[16] parameter({i})" for i in range(n))]
    lines += [f"t = {shape} tuple(z, {', '.join(f'p{i}' for i in range(n))})"]
    return _module([*lines, f"w = {shape} while(t), condition=c, body=b"], condition, "\n".join(body))


def branches(n: int) -> str:
    """Conditionals one after another."""
    computations, lines = [], ["x0 = f32[4] parameter(0)", "p = pred[] parameter(1)"]
    for i in range(n):
        computations += [f"a{i} {{ x = f32[4] parameter(0)\n ROOT y = f32[4] tanh(x) }}"]
        computations += [f"b{i} {{ x = f32[4] parameter(0)\n ROOT y = f32[4] add(x, x) }}"]
        called = f"true_computation=a{i}, false_computation=b{i}"
        lines += [f"x{i + 1} = f32[4] conditional(p, x{i}, x{i}), {called}"]
    return _module(lines, *computations)


def calls(n: int) -> str:
    """Calls of as many functions."""
    computations, lines = [], ["x0 = f32[16] parameter(0)"]
    for i in range(n):
        computations += [f"f{i} {{ x = f32[16] parameter(0)\n y = f32[16] tanh(x)\n ROOT z = f32[16] add(y, x) }}"]
        lines += [f"x{i + 1} = f32[16] call(x{i}), to_apply=f{i}"]
    return _module(lines, *computations)


def transposes(n: int) -> str:
    """Kernels that nothing joins, one after another."""
    lines = ["v0 = f32[8,8] parameter(0)"]
    for i in range(1, n // 2 + 1):
        lines += [f"t{i} = f32[8,8] transpose(v{i - 1}), dimensions={{1,0}}", f"v{i} = f32[8,8] add(t{i}, v{i - 1})"]
    return _module(lines)


FORMS: dict[str, Callable[[int], str]] = {
    form.__name__: form
    for form in (
        chain, blocks, mixed, outputs, cumulated_outputs, training_step, concatenation, parameters, readers, updates,
        loops, wide_loop, branches, calls, transposes,
    )
}  # fmt: skip
