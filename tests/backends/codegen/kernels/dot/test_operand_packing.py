"""Right operands that are packed once: what loops do not change, constants; values, decisions, what stays as it is."""

import numpy as np
import pytest

import xlalite as xl
from xlalite.backends.base import CompileOptions, Executable, get_backend
from xlalite.backends.codegen.llvm import TargetInfo
from xlalite.hlo import evaluate, parse
from xlalite.passes.core.debug_options import DebugOptions


def loop_text(
    m: int,
    n: int,
    k: int,
    *,
    rhs: str = "kn",
    dtype: str = "f32",
    after: str = "multiply(d, scale)",
    w: str = "w",
    trips: int = 5,
) -> str:
    """Trips that add `after` a product of a changing `h` with `w` to a sum; `w` of the next trip is as given."""
    shape = f"{dtype}[{k},{n}]" if rhs == "kn" else f"{dtype}[{n},{k}]"
    state = f"(s32[], {dtype}[{m},{k}], {shape}, {dtype}[{m},{n}])"
    return f"""HloModule loop
condition {{
  s = {state} parameter(0)
  i = s32[] get-tuple-element(s), index=0
  trips = s32[] constant({trips})
  ROOT c = pred[] compare(i, trips), direction=LT
}}
body {{
  s = {state} parameter(0)
  i = s32[] get-tuple-element(s), index=0
  h = {dtype}[{m},{k}] get-tuple-element(s), index=1
  w = {shape} get-tuple-element(s), index=2
  sum = {dtype}[{m},{n}] get-tuple-element(s), index=3
  one = s32[] constant(1)
  j = s32[] add(i, one)
  d = {dtype}[{m},{n}] dot(h, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{{rhs.index("k")}}}
  x = {dtype}[] convert(j)
  scale = {dtype}[{m},{n}] broadcast(x), dimensions={{}}
  y = {dtype}[{m},{n}] {after}
  new_sum = {dtype}[{m},{n}] add(sum, y)
  new_h = {dtype}[{m},{k}] negate(h)
  new_w = {shape} negate(w)
  ROOT t = {state} tuple(j, new_h, {w}, new_sum)
}}
ENTRY main {{
  zero = s32[] constant(0)
  h = {dtype}[{m},{k}] parameter(0)
  w = {shape} parameter(1)
  sum = {dtype}[{m},{n}] parameter(2)
  t = {state} tuple(zero, h, w, sum)
  l = {state} while(t), condition=condition, body=body
  ROOT r = {dtype}[{m},{n}] get-tuple-element(l), index=3
}}"""


def compiled(text: str, threads: int = 2, **options: object) -> Executable:
    return get_backend("cpu").compile(parse(text), CompileOptions(num_threads=threads, use_cache=False, **options))  # type: ignore[arg-type]


def packings(executable: Executable) -> list[str]:
    """Why operands were packed."""
    return [d.reason for d in executable.decisions() if d.decided_by == "dot-operand-packing"]


def arguments(text: str, rng: np.random.Generator) -> list[np.ndarray]:
    shapes = [parameter.shape for parameter in parse(text).entry_computation.parameters]
    return [(rng.standard_normal(shape.dims) * 4).astype(shape.dtype.numpy) for shape in shapes]


def check(text: str, rng: np.random.Generator, terms: int, *, packed: int = 1) -> None:
    values = arguments(text, rng)
    executable = compiled(text)
    assert packings(executable) == ["the loop reuses it"] * packed
    got, wanted = executable(*values), evaluate(parse(text), *values)
    if np.issubdtype(wanted.dtype, np.integer):
        np.testing.assert_array_equal(got, wanted)
    else:
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=terms * 1e-4)
    for threads in (1, 5):
        np.testing.assert_array_equal(compiled(text, threads)(*values), got)


@pytest.mark.parametrize("rhs", ["kn", "nk"])
@pytest.mark.parametrize(
    ("m", "n", "k"), [(32, 512, 63), (33, 250, 90), (17, 97, 300), (200, 129, 130), (30, 700, 2100), (5, 4097, 17)]
)
def test_what_a_loop_does_not_change_is_packed_before_it(
    m: int, n: int, k: int, rhs: str, rng: np.random.Generator
) -> None:
    check(loop_text(m, n, k, rhs=rhs), rng, k)


@pytest.mark.parametrize("m", [1, 2, 4])
def test_many_steps_pack_for_few_rows_too(m: int, rng: np.random.Generator) -> None:
    check(loop_text(m, 510, 119, trips=8), rng, 200)


@pytest.mark.parametrize("dtype", ["f64", "s32"])
def test_packed_operands_of_other_types(dtype: str, rng: np.random.Generator) -> None:
    check(loop_text(20, 150, 100, dtype=dtype), rng, 100)


@pytest.mark.parametrize("after", ["add(d, d)", "subtract(scale, d)", "copy(d)"])
def test_what_follows_the_product_stays_in_its_kernel(after: str, rng: np.random.Generator) -> None:
    check(loop_text(20, 150, 100, after=after), rng, 100)


@pytest.mark.parametrize("isa", ["AVX2", "SSE4_2"])
def test_panels_are_as_wide_as_the_target_likes(isa: str, rng: np.random.Generator) -> None:
    text = loop_text(20, 150, 200)
    values = arguments(text, rng)
    executable = compiled(text, debug=DebugOptions(cpu_max_isa=isa))
    assert packings(executable) == ["the loop reuses it"]
    np.testing.assert_allclose(executable(*values), evaluate(parse(text), *values), rtol=1e-5, atol=1e-2)


def test_inner_loops_read_what_is_packed_before_the_outer_one(rng: np.random.Generator) -> None:
    inner = loop_text(20, 150, 100)
    state = "(s32[], f32[20,100], f32[100,150], f32[20,150])"
    loop = (
        f"  l = {state} while(t), condition=condition, body=body\n  ROOT r = f32[20,150] get-tuple-element(l), index=3"
    )
    outer = f"""outer {{
  s = {state} parameter(0)
  i = s32[] get-tuple-element(s), index=0
  h = f32[20,100] get-tuple-element(s), index=1
  w = f32[100,150] get-tuple-element(s), index=2
  sum = f32[20,150] get-tuple-element(s), index=3
  one = s32[] constant(1)
  j = s32[] add(i, one)
  two = s32[] constant(2)
  t = {state} tuple(two, h, w, sum)
  l = {state} while(t), condition=condition, body=body
  new_h = f32[20,100] get-tuple-element(l), index=1
  new_sum = f32[20,150] get-tuple-element(l), index=3
  ROOT u = {state} tuple(j, new_h, w, new_sum)
}}
ENTRY"""
    text = inner.replace("ENTRY", outer).replace(loop, loop.replace("body=body", "body=outer"))
    check(text, rng, 500, packed=2)
    bodies, entry = compiled(text).as_text("optimized_hlo").split("ENTRY")
    assert "calls=%packing" not in bodies
    assert entry.count("calls=%packing") == 1


@pytest.mark.parametrize(("m", "n", "k", "rhs"), [(33, 250, 90, "kn"), (40, 97, 300, "nk"), (50, 300, 2100, "kn")])
def test_constants_are_packed_once_for_all(m: int, n: int, k: int, rhs: str, rng: np.random.Generator) -> None:
    # Sums of these are exact.
    w = (rng.integers(-8, 9, (k, n) if rhs == "kn" else (n, k)) / 64).astype(np.float32)
    compiled_once = xl.jit(lambda x: xl.tanh(xl.matmul(x, w if rhs == "kn" else w.T)))
    x = (rng.integers(-8, 9, (m, k)) / 64).astype(np.float32)
    executable = compiled_once.executable(x)
    assert packings(executable) == ["constant"]
    np.testing.assert_allclose(executable(x)[0], np.tanh(x @ (w if rhs == "kn" else w.T)), rtol=1e-6)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(loop_text(20, 150, 100, w="new_w"), id="it changes"),
        pytest.param(loop_text(4, 150, 200), id="few rows"),
        pytest.param(loop_text(20, 2 * TargetInfo.host().lanes(32) - 2, 2000), id="one panel"),
        pytest.param(loop_text(20, 150, 50), id="in the nearest cache"),
        pytest.param(loop_text(20, 150, 200, dtype="bf16"), id="of another type than the sums"),
    ],
)
def test_what_is_read_where_it_lies(text: str) -> None:
    assert packings(compiled(text)) == []


@pytest.mark.parametrize("sizes", [(2, 5, 3), (2, 3, 5), (1, 6, 3), (0, 6, 3), (2, 6, 0)])
def test_a_reshaped_transposition_that_is_no_packing_is_read_as_it_lies(sizes: tuple[int, int, int]) -> None:
    a, b, c = sizes
    text = f"""HloModule m
ENTRY e {{
  x = f32[4,{a * c}] parameter(0)
  y = f32[{a},{b},{c}] parameter(1)
  turned = f32[{c},{a},{b}] transpose(y), dimensions={{2,0,1}}
  matrix = f32[{c * a},{b}] reshape(turned)
  ROOT r = f32[4,{b}] dot(x, matrix), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
}}"""
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal(dims).astype(np.float32) for dims in ((4, a * c), sizes))
    expected = x @ y.transpose(2, 0, 1).reshape(c * a, b)
    np.testing.assert_allclose(xl.compile(parse(text))(x, y), expected, rtol=1e-5, atol=1e-6)


def products_in_a_row(count: int, m: int, k: int, rhs: str = "kn") -> str:
    """Products of what the one before gives, all with `w`."""
    lines = [f"x0 = f32[{m},{k}] parameter(0)", f"w = f32[{k},{k}] parameter(1)"]
    for number in range(count):
        attributes = f"lhs_contracting_dims={{1}}, rhs_contracting_dims={{{rhs.index('k')}}}"
        lines.append(f"d{number} = f32[{m},{k}] dot(x{number}, w), {attributes}")
        lines.append(f"{'ROOT ' * (number == count - 1)}x{number + 1} = f32[{m},{k}] negate(d{number})")
    return "HloModule m\nENTRY e {\n  " + "\n  ".join(lines) + "\n}"


@pytest.mark.parametrize(("count", "m", "k"), [(3, 300, 512), (4, 70, 257)])
def test_what_several_products_read_is_packed_once(count: int, m: int, k: int, rng: np.random.Generator) -> None:
    text = products_in_a_row(count, m, k)
    executable = compiled(text)
    assert packings(executable) == ["several products read it"]
    x, w = (rng.standard_normal(sizes).astype(np.float32) / k**0.5 for sizes in ((m, k), (k, k)))
    found = executable(x, w)
    np.testing.assert_allclose(found, evaluate(parse(text), x, w), rtol=1e-4, atol=1e-6)
    plain = compiled(text, debug=DebugOptions(disable_passes=("dot-operand-packing",)))
    assert packings(plain) == []
    np.testing.assert_array_equal(found, plain(x, w))


def test_what_few_products_read_or_must_turn_is_packed_by_them() -> None:
    assert packings(compiled(products_in_a_row(2, 128, 512))) == []
    assert packings(compiled(products_in_a_row(4, 128, 512, "nk"))) == []
    assert packings(compiled(products_in_a_row(3, 64, 1024))) == []


def test_what_lies_as_if_it_were_packed() -> None:
    """A parameter in panels of 32 columns, which the program itself puts beside one another."""
    text = """HloModule m
ENTRY e {
  a = f32[16,64] parameter(0)
  p = f32[2,64,32] parameter(1)
  t = f32[64,2,32] transpose(p), dimensions={1,0,2}
  b = f32[64,64] reshape(t)
  ROOT d = f32[16,64] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}"""
    a, p = (np.random.default_rng(0).standard_normal(dims, np.float32) for dims in ((16, 64), (2, 64, 32)))
    executable = get_backend("cpu").compile(parse(text), CompileOptions(use_cache=False))
    np.testing.assert_allclose(executable(a, p), evaluate(parse(text), a, p), rtol=1e-5, atol=1e-5)
