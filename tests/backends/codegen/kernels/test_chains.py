"""Products, rows made of their results, and products of those in one kernel: values, decisions, what stays apart."""

import ctypes
import itertools
from collections.abc import Sequence

import ml_dtypes
import numpy as np
import pytest

from xlalite.backends.base import CompileOptions, Executable, get_backend
from xlalite.backends.codegen.kernels.number_checks import finite, zeros
from xlalite.backends.codegen.llvm import I32, I64, PTR, ModuleBuilder
from xlalite.backends.cpu.native.jit import compile_ir
from xlalite.backends.cpu.native.linker import link
from xlalite.backends.cpu.native.object_code import NEXT_MODULE, IrSource
from xlalite.hlo import parse
from xlalite.hlo.types.dtype import DType

FUNCTIONS = """
most {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] maximum(a, b)
}
sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b)
}
"""
CAUSAL = """  i = s32[@M,@N] iota(), iota_dimension=0
  j = s32[@M,@N] iota(), iota_dimension=1
  seen = pred[@M,@N] compare(i, j), direction=GE
  mask = pred[@B,@M,@N] broadcast(seen), dimensions={1,2}
  low = f32[] constant(@LOW)
  lows = f32[@B,@M,@N] broadcast(low), dimensions={}
  x = f32[@B,@M,@N] select(mask, s, lows)
"""
MASKED = CAUSAL.replace("broadcast(seen)", "broadcast(chosen)").replace(
    "  mask = ",
    """  near = s32[@M,@N] add(i, c40s)
  far = s32[@M,@N] add(i, c4000s)
  later = s32[@M,@N] add(j, c300s)
  ones = s32[@M,@N] and(j, c1s)
  even = pred[@M,@N] compare(ones, c0s), direction=EQ
  chosen = pred[@M,@N] @CHOSEN
  hidden = pred[@M,@N] not(chosen)
  mask = """,
)
for number in (0, 1, 40, 300, 4000):
    filled = f"  c{number}s = s32[@M,@N] broadcast(c{number}), dimensions={{}}"
    MASKED = f"  c{number} = s32[] constant({number})\n{filled}\n{MASKED}"
ADDED = """  mask = f32[@M,@N] parameter(3)
  masks = f32[@B,@M,@N] broadcast(mask), dimensions={1,2}
  x = f32[@B,@M,@N] add(s, masks)
"""
SCALED = """  scale = f32[] constant(0.125)
  scales = f32[@B,@M,@N] broadcast(scale), dimensions={}
  x = f32[@B,@M,@N] multiply(s, scales)
"""
LEFT = "lhs_batch_dims={0}, lhs_contracting_dims={2}"
PRODUCT = f"  ROOT r = f32[@B,@M,@D] dot(p, v), {LEFT}, rhs_batch_dims={{0}}, rhs_contracting_dims={{1}}\n"
TURNED = "  ROOT r = f32[@B,@D,@M] dot(v, p), lhs_batch_dims={0}, lhs_contracting_dims={1}, rhs_batch_dims={0}, @LAST\n"


def attention(
    batch: int,
    m: int,
    n: int,
    k: int,
    d: int,
    *,
    middle: str = SCALED,
    end: str = PRODUCT,
    low: str = "-inf",
    keys: str = "nk",
) -> str:
    """The softmax of `x`, which is made of the scores `s` in the middle, times the values."""
    text = f"""HloModule attention
{FUNCTIONS}
ENTRY e {{
  q = f32[@B,@M,@K] parameter(0)
  k = f32[@B,{"@N,@K" if keys == "nk" else "@K,@N"}] parameter(1)
  v = f32[@B,@N,@D] parameter(2)
  s = f32[@B,@M,@N] dot(q, k), {LEFT}, rhs_batch_dims={{0}}, rhs_contracting_dims={{{1 + keys.index("k")}}}
{middle}
  lowest = f32[] constant(-inf)
  m = f32[@B,@M] reduce(x, lowest), dimensions={{2}}, to_apply=most
  ms = f32[@B,@M,@N] broadcast(m), dimensions={{0,1}}
  y = f32[@B,@M,@N] subtract(x, ms)
  z = f32[@B,@M,@N] exponential(y)
  zero = f32[] constant(0)
  t = f32[@B,@M] reduce(z, zero), dimensions={{2}}, to_apply=sum
  ts = f32[@B,@M,@N] broadcast(t), dimensions={{0,1}}
  p = f32[@B,@M,@N] divide(z, ts)
{end}}}
"""
    for name, value in {
        "LAST": "rhs_contracting_dims={2}",
        "LOW": low,
        "B": batch,
        "M": m,
        "N": n,
        "K": k,
        "D": d,
    }.items():
        text = text.replace(f"@{name}", str(value))
    return text


def compiled(text: str, threads: int = 2) -> Executable:
    return get_backend("cpu").compile(parse(text), CompileOptions(num_threads=threads, use_cache=False))


def arguments(text: str, rng: np.random.Generator) -> list[np.ndarray]:
    shapes = [parameter.shape for parameter in parse(text).entry_computation.parameters]
    return [(0.3 * rng.standard_normal(shape.dims)).astype(shape.dtype.numpy) for shape in shapes]


def reasons(executable: Executable) -> list[str]:
    return [d.reason for d in executable.decisions() if d.decided_by == "product-chaining"]


JOINED = ["what they hand on is never whole in memory"]
SIZES = [(7, 130, 300, 33, 61), (1, 900, 300, 64, 64), (300, 31, 33, 17, 40), (2, 513, 257, 3, 300)]


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize(
    "options",
    [{}, {"middle": CAUSAL}, {"middle": CAUSAL, "low": "-1e9"}, {"middle": ADDED}, {"keys": "kn"}],
    ids=["scaled", "causal", "causal by a large number", "added mask", "keys along columns"],
)
def test_attention_is_one_kernel(sizes: tuple[int, ...], options: dict[str, str], check, kernels, rng) -> None:
    text = attention(*sizes, **options)
    executable = check(text, *arguments(text, rng), ulps=16)
    assert kernels(executable) == ["chain"]
    assert reasons(executable) == JOINED
    batch, queries, keys, depth, width = sizes
    (chain,) = [d for d in executable.decisions() if d.verdict == "chain"]
    flops = 2 * batch * queries * keys * (depth + width)
    assert flops <= chain.numbers["flops"] <= flops + 40 * batch * queries * keys


@pytest.mark.parametrize(
    ("mask", "ahead"),
    [
        ("compare(i, j), direction=GE", 0),
        ("compare(i, j), direction=GT", -1),
        ("compare(j, i), direction=LE", 0),
        ("compare(j, i), direction=LT", -1),
        ("compare(near, j), direction=GE", 40),
        ("compare(i, later), direction=GT", -301),
        ("compare(far, j), direction=GE", 4000),
        ("and(seen, even)", 0),
        ("compare(i, j), direction=LE", None),
        ("compare(i, i), direction=GE", None),
        ("or(seen, even)", None),
        ("compare(ones, c0s), direction=EQ", None),
    ],
)
@pytest.mark.parametrize("hides", [False, True])
def test_scores_that_a_mask_hides_are_not_computed(mask: str, ahead: int | None, hides: bool, check, rng) -> None:
    middle = MASKED.replace("@CHOSEN", mask)
    if hides:
        middle = middle.replace("broadcast(chosen)", "broadcast(hidden)").replace("(mask, s, lows)", "(mask, lows, s)")
    text = attention(2, 410, 390, 16, 24, middle=middle)
    q, k, v = arguments(text, rng)
    k[:, 350:] = np.nan
    executable = check(text, q, k, v, ulps=16)
    assert reasons(executable) == JOINED
    (chain,) = [d for d in executable.decisions() if d.verdict == "chain"]
    assert chain.numbers.get("ahead") == ahead


def with_results(text: str, *others: str) -> str:
    """The program that gives other values, too; all are `name: shape`."""
    head, _, tail = text.rpartition("  ROOT r = ")
    names, shapes = zip(*(other.split(": ") for other in others), strict=True)
    shape = tail.split(" ", 1)[0]
    root = f"  ROOT all = ({shape}, {', '.join(shapes)}) tuple(r, {', '.join(names)})"
    return f"{head}  r = {tail.removesuffix(chr(10) + '}' + chr(10))}\n{root}\n}}\n"


def test_every_number_of_threads_gives_the_bits_of_the_parts(rng) -> None:
    text = attention(3, 200, 500, 24, 31, middle=CAUSAL)
    values = arguments(text, rng)
    apart = compiled(with_results(text, "s: f32[3,200,500]"))
    assert not reasons(apart)
    expected = apart(*values)[0]
    for threads in (1, 2, 5):
        np.testing.assert_array_equal(compiled(text, threads)(*values), expected)


@pytest.mark.parametrize("sizes", [(6, 500, 260, 33, 61), (2, 700, 700, 40, 64)])
def test_right_operands_stay_packed_for_the_blocks_of_a_product_alone(sizes: tuple[int, ...], rng) -> None:
    text = attention(*sizes)
    apart, joined = compiled(with_results(text, "s: f32[{},{},{}]".format(*sizes[:3]))), compiled(text)
    (chain,) = [d for d in joined.decisions() if d.verdict == "chain"]
    assert chain.numbers["first_packed"] == "rhs"
    assert chain.numbers["kept"] == 2
    for _ in range(2):
        values = arguments(text, rng)
        np.testing.assert_array_equal(joined(*values), apart(*values)[0])


@pytest.mark.parametrize(
    ("options", "depths"),
    [
        ({"middle": CAUSAL}, 8),
        ({"middle": CAUSAL.replace("GE", "GT")}, 8),
        ({"middle": CAUSAL.replace("compare(i, j)", "compare(j, i)").replace("(mask, s, lows)", "(mask, lows, s)")}, 8),
        ({"middle": CAUSAL, "low": "-1e9"}, 8),
        ({"middle": CAUSAL, "low": "-30"}, 8),
        ({"middle": ADDED}, 8),
        ({"middle": SCALED}, None),
    ],
    ids=["causal", "without itself", "hidden by the mask", "by a large number", "by a number", "added", "no mask"],
)
def test_zeros_at_the_end_of_rows_are_left_out(options: dict[str, str], depths: int | None, rng) -> None:
    text = attention(4, 700, 900, 16, 40, **options)
    executable = compiled(text)
    (chain,) = [d for d in executable.decisions() if d.verdict == "chain"]
    assert chain.numbers.get("depths") == depths
    values = arguments(text, rng)
    if len(values) > 3:
        values[3][:, 600:] = -1e30
        values[3][300:400, 100:] = values[3][650, 700] = -np.inf
        values[3][650, 800] = 1
    apart = compiled(with_results(text, "s: f32[4,700,900]"))
    for number in (np.inf, np.nan, 3e38):
        # Behind what any row sees, in what few see, and where nothing needs to be looked for.
        values[2][0, 880, 7], values[2][1, 699, 0], values[2][2, 3, 39] = number, -number, number
        values[0][3, 650] = number
        np.testing.assert_array_equal(executable(*values), apart(*values)[0])


@pytest.mark.parametrize("dtype", [DType.F16, DType.BF16, DType.F32, DType.F64], ids=str)
def test_numbers_are_looked_at_and_nothing_beside_them(dtype: DType) -> None:
    module = ModuleBuilder("finite")
    for name, function in (("finite", finite(module, dtype)), ("zeros", zeros(module, dtype))):
        fb = module.function(f"ask_{name}", I32, (PTR, I64, I64, I64))
        fb.ret(fb.zext(fb.call(function, *fb.parameters), I32))
    linked = link([compile_ir(IrSource(NEXT_MODULE.join((module.text(), *module.shared_texts))))])
    number = ctypes.c_int64
    kind = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, number, number, number)
    is_finite, are_zero = (kind(linked.address(f"ask_{name}")) for name in ("finite", "zeros"))
    lanes = module.target.lanes(8 * dtype.size_bytes)
    limits = ml_dtypes.finfo(dtype.numpy)
    for count in range(3 * lanes + 2):
        for check, right, wrong in (
            (is_finite, (-limits.max, limits.max, 0.0), (np.inf, -np.inf, np.nan)),
            (are_zero, (0.0, -0.0, 0.0), (limits.smallest_subnormal, -limits.max, np.nan)),
        ):
            lines = np.full((4, count + 2), np.nan, dtype.numpy)
            lines[:3, 1:-1] = np.reshape(right, (3, 1))
            given = lines[:, 1:].ctypes.data, 3, count + 2, count
            assert check(*given)
            for place in itertools.product(range(3), range(1, count + 1)):
                for other in wrong:
                    lines[place] = other
                    assert not check(*given)
                lines[place] = right[place[0]]


def test_positions_may_be_constants() -> None:
    """As front ends write them, whose ranges are folded."""
    given = CAUSAL
    for name, size, dimension in (("i", 190, 0), ("j", 500, 1)):
        line = f"s32[{size}] constant({{{', '.join(map(str, range(size)))}}})"
        spread = f"  {name}s = {line}\n  {name} = s32[@M,@N] broadcast({name}s), dimensions={{{dimension}}}\n"
        given = given.replace(f"  {name} = s32[@M,@N] iota(), iota_dimension={dimension}\n", spread)
    figures = [
        [d.numbers for d in compiled(attention(5, 190, 500, 24, 31, middle=middle)).decisions() if d.verdict == "chain"]
        for middle in (CAUSAL, given)
    ]
    assert figures[0] == figures[1]
    assert figures[0][0]["ahead"] == 0


def test_rows_that_others_need_are_a_result(check, kernels, rng) -> None:
    text = attention(5, 190, 300, 24, 31, middle=CAUSAL)
    both = with_results(text, "p: f32[5,190,300]")
    executable = check(both, *arguments(both, rng), ulps=16)
    assert kernels(executable) == ["chain"]
    values = arguments(text, rng)
    np.testing.assert_array_equal(executable(*values)[0], compiled(text)(*values))
    gradient = "  w = f32[@B,@M,@D] parameter(3)\n  g = f32[@B,@N,@D] dot(p, w), lhs_batch_dims={0}, "
    gradient += "lhs_contracting_dims={1}, rhs_batch_dims={0}, rhs_contracting_dims={1}\n"
    text = with_results(attention(5, 190, 300, 24, 31, end=gradient + PRODUCT), "g: f32[5,300,31]")
    executable = check(text, *arguments(text, rng), ulps=16)
    assert kernels(executable) == ["chain"]
    few = "a second product sums over rows, and there are too few for threads to share"
    text = text.replace("[5,", "[3,").replace("190", "390")
    executable = check(text, *arguments(text, rng), ulps=16)
    assert sorted(kernels(executable)) == ["chain", "dot"]
    assert reasons(executable) == [few, *JOINED]


def test_products_with_what_is_made_of_the_rows_stay_apart(check, rng) -> None:
    end = "  u = f32[@B,@N] reduce(p, zero), dimensions={1}, to_apply=sum\n"
    end += "  us = f32[@B,@N,@D] broadcast(u), dimensions={0,1}\n  w = f32[@B,@N,@D] multiply(v, us)\n"
    text = attention(5, 190, 300, 24, 31, end=end + PRODUCT.replace("dot(p, v)", "dot(p, w)"))
    assert not reasons(check(text, *arguments(text, rng), ulps=16))


@pytest.mark.parametrize("low", ["-inf", "-3e38"])
def test_rows_without_keys_and_numbers_that_are_none(low: str, check, kernels, rng) -> None:
    text = attention(4, 150, 500, 16, 24, middle=CAUSAL.replace("direction=GE", "direction=GT"), low=low)
    q, k, v = arguments(text, rng)
    q[0, 3], k[1, 7], v[2, 400] = np.inf, np.nan, np.inf
    v[3, 80] = np.nan
    q[3, 90] = -np.inf
    assert kernels(check(text, q, k, v, ulps=16)) == ["chain"]


def test_what_follows_joins_and_types_may_change(check, kernels, rng) -> None:
    end = PRODUCT.replace("ROOT r", "o") + "  w = f32[@B,@M,@D] parameter(3)\n  ROOT r = f32[@B,@M,@D] add(o, w)\n"
    text = attention(5, 170, 400, 32, 48, end=end)
    assert kernels(check(text, *arguments(text, rng), ulps=16)) == ["chain"]
    narrow = "  h = bf16[@B,@M,@N] convert(p)\n" + PRODUCT.replace("dot(p, v)", "dot(h, v)")
    text = attention(5, 170, 400, 32, 48, end=narrow).replace("v = f32", "v = bf16")
    values = arguments(text, rng)
    assert kernels(check(text, *values, ulps=2.0**12)) == ["chain"]


@pytest.mark.parametrize("rows", [96, 127, 300])
def test_narrow_rows_fill_tiles_in_part(rows: int, check, kernels, rng) -> None:
    """Registers of matrices have tiles of more rows than blocks; what follows the product sees those of the block."""
    end = "  h = bf16[@B,@M,@N] convert(p)\n" + PRODUCT.replace("ROOT r", "o").replace("dot(p, v)", "dot(h, v)")
    end += "  ROOT r = bf16[@B,@M,@D] convert(o)\n"
    text = attention(8, rows, 700, 33, 70, middle=CAUSAL, end=end)
    for name in "qkv":
        text = text.replace(f"  {name} = f32", f"  {name} = bf16")
    assert kernels(check(text, *arguments(text, rng), ulps=2.0**12)) == ["chain"]


def test_several_dimensions_of_batches(check, kernels, rng) -> None:
    text = attention(3, 130, 300, 16, 20, middle=ADDED).replace("[3,", "[3,4,")
    text = text.replace("batch_dims={0}", "batch_dims={0,1}").replace("contracting_dims={2}", "contracting_dims={3}")
    text = text.replace("rhs_contracting_dims={1}", "rhs_contracting_dims={2}").replace(
        "dimensions={2}", "dimensions={3}"
    )
    text = text.replace("dimensions={1,2}", "dimensions={2,3}").replace("dimensions={0,1}\n", "dimensions={0,1,2}\n")
    text = text.replace("lhs_batch_dims={0,1,2}", "lhs_batch_dims={0,1}")
    assert kernels(check(text, *arguments(text, rng), ulps=16)) == ["chain"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (attention(2, 90, 50, 16, 24), ["what is handed on stays in the second cache anyway"]),
        (attention(1, 512, 40_000, 16, 24), ["a few rows fill the second cache"]),
        (attention(300, 40, 40, 16, 24, end=TURNED), []),
        (attention(1, 1500, 700, 700, 2000), ["the products would pack their right operands again for every block"]),
    ],
    ids=["small", "long rows", "on the right", "large right operands"],
)
def test_others_stay_apart(text: str, expected: Sequence[str]) -> None:
    executable = compiled(text)
    assert reasons(executable) == expected


def test_columns_and_products_of_few_columns_stay_apart(check, kernels, rng) -> None:
    text = attention(5, 250, 250, 16, 24).replace("dimensions={2}, to_apply", "dimensions={1}, to_apply")
    text = text.replace("dimensions={0,1}\n", "dimensions={0,2}\n")
    assert not reasons(check(text, *arguments(text, rng), ulps=16))
    text = attention(5, 250, 250, 16, 3)
    executable = check(text, *arguments(text, rng), ulps=16)
    assert reasons(executable) == ["a product's rows are not those of its left operand"]
    assert "chain" not in kernels(executable)
