"""Which instructions share a kernel, and what the records say."""

import pytest

from xlalite.hlo.evaluation.evaluator import evaluate
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.text import parse
from xlalite.hlo.verification.verifier import verify
from xlalite.passes.fusion import Fusion

SCALARS = """
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b) }
max { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] maximum(a, b) }
"""


def fused(body: str) -> HloModule:
    """The module of an entry computation after fusion, verified."""
    module = parse(f"HloModule t\n{SCALARS}\nENTRY e {{\n{body}\n}}")
    Fusion().run(module)
    verify(module)
    return module


def kernels(module: HloModule) -> list[str]:
    """Opcodes of the entry that compute something, in order."""
    skipped = {"parameter", "constant", "tuple", "get-tuple-element"}
    return [i.opcode for i in module.entry_computation.post_order() if i.opcode not in skipped]


def why(module: HloModule, producer: str) -> list[str]:
    """Verdicts and reasons about a producer."""
    return [f"{d.verdict}: {d.reason}" for d in module.decisions if d.subject[0] == producer]


def test_fusion_joins_elementwise_chain() -> None:
    module = fused("x = f32[8] parameter(0)\n y = f32[8] exponential(x)\n ROOT z = f32[8] negate(y)")
    assert kernels(module) == ["fusion"]
    assert why(module, "y") == ["fused: saves writing and reading it"]


def test_fusion_leaves_single_instruction_alone() -> None:
    module = parse("HloModule t\nENTRY e {\n x = f32[8] parameter(0)\n ROOT y = f32[8] exponential(x)\n}")
    assert not Fusion().run(module)
    assert kernels(module) == ["exponential"]


def test_fusion_makes_softmax_one_kernel() -> None:
    module = fused(
        """x = f32[6,9] parameter(0)
        z = f32[] constant(0)
        low = f32[] constant(-inf)
        m = f32[6] reduce(x, low), dimensions={1}, to_apply=max
        mb = f32[6,9] broadcast(m), dimensions={0}
        s = f32[6,9] subtract(x, mb)
        e = f32[6,9] exponential(s)
        q = f32[6] reduce(e, z), dimensions={1}, to_apply=add
        qb = f32[6,9] broadcast(q), dimensions={0}
        ROOT r = f32[6,9] divide(e, qb)"""
    )
    assert kernels(module) == ["fusion"]


def test_fusion_computes_row_statistics_once_a_row() -> None:
    """rsqrt of a row's sum is expensive to repeat for each column, but not once a row."""
    module = fused(
        """x = f32[6,9] parameter(0)
        z = f32[] constant(0)
        q = f32[6] reduce(x, z), dimensions={1}, to_apply=add
        r = f32[6] rsqrt(q)
        rb = f32[6,9] broadcast(r), dimensions={0}
        ROOT o = f32[6,9] multiply(x, rb)"""
    )
    assert kernels(module) == ["fusion"]


def test_fusion_does_not_repeat_expensive_producer_for_each_column() -> None:
    module = fused(
        """x = f32[6] parameter(0)
        y = f32[6,9] parameter(1)
        r = f32[6] exponential(x)
        rb = f32[6,9] broadcast(r), dimensions={0}
        ROOT o = f32[6,9] multiply(y, rb)"""
    )
    assert kernels(module) == ["exponential", "fusion"]
    assert why(module, "r") == ["not fused: the kernel reads each element more than once and it is expensive"]


def test_fusion_gives_kernel_a_second_output() -> None:
    module = fused(
        """x = f32[6,9] parameter(0)
        y = f32[9,4] parameter(1)
        e = f32[6,9] exponential(x)
        n = f32[6,9] negate(e)
        d = f32[6,4] dot(e, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
        ROOT t = (f32[6,9], f32[6,4]) tuple(n, d)"""
    )
    assert sorted(kernels(module)) == ["dot", "fusion"]
    assert why(module, "e") == [
        "fused as a second output: saves writing and reading it",
    ]


def test_fusion_keeps_second_output_that_would_close_a_cycle() -> None:
    """The kernel of o needs the dot, and the dot needs e."""
    module = fused(
        """x = f32[6,6] parameter(0)
        e = f32[6,6] exponential(x)
        d = f32[6,6] dot(e, e), lhs_contracting_dims={1}, rhs_contracting_dims={0}
        ROOT o = f32[6,6] add(e, d)"""
    )
    assert kernels(module) == ["exponential", "dot", "add"]
    assert "not fused: another user of it comes before the kernel" in why(module, "e")


def test_fusion_sees_no_cycle_through_what_each_kernel_computes_for_itself() -> None:
    module = fused(
        """x = f32[8] parameter(0)
        s = f32[] parameter(1)
        e = f32[8] exponential(x)
        b = f32[8] broadcast(s), dimensions={}
        y = f32[8] add(e, b)
        z = f32[8] multiply(e, b)
        ROOT t = (f32[8], f32[8]) tuple(y, z)"""
    )
    assert kernels(module) == ["fusion", "fusion"]
    assert why(module, "e")[-1].startswith("fused as a second output")


def test_fusion_sees_the_cycle_through_a_reader_that_two_kernels_compute() -> None:
    """The kernel of `a` must not give `e`: that of `n` needs it for its own copy of `w`, and `a` needs `n`."""
    module = fused(
        """x = f16[8] parameter(0)
        e = f16[8] exponential(x)
        w = f32[8] convert(e)
        u = f32[8] negate(w)
        n = f32[8] abs(w)
        s = f32[8] custom-call(n), custom_call_target="f"
        ROOT a = f32[8] add(u, s)"""
    )
    assert kernels(module) == ["fusion", "custom-call", "fusion"]
    assert why(module, "e")[0] == "not fused: another user of it comes before the kernel"


def test_fusion_copies_cheap_producer_into_each_kernel() -> None:
    module = fused(
        """x = f32[6] parameter(0)
        y = f32[6,9] parameter(1)
        w = f32[9,4] parameter(2)
        xb = f32[6,9] broadcast(x), dimensions={0}
        a = f32[6,9] add(y, xb)
        d = f32[6,4] dot(a, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
        s = f32[6,9] subtract(y, xb)
        ROOT t = (f32[6,4], f32[6,9]) tuple(d, s)"""
    )
    assert sorted(kernels(module)) == ["dot", "fusion", "fusion"]


@pytest.mark.parametrize("opcode", ["rng-get-and-update-state"])
def test_fusion_leaves_side_effects_alone(opcode: str) -> None:
    module = fused(f"s = u64[2] {opcode}(), delta=1\n n = u64[2] not(s)\n ROOT m = u64[2] popcnt(n)")
    assert opcode in kernels(module)


def test_fusion_keeps_values(random_module, random_arguments, assert_same_bits) -> None:
    import random

    for seed in range(20):
        module = random_module(random.Random(seed), 25)
        arguments = random_arguments(module)
        expected = evaluate(module, *arguments)
        Fusion().run(module)
        verify(module)
        assert_same_bits(expected, evaluate(module, *arguments), str(module))


SHARED_SUM = """x = f32[6,9] parameter(0)
 z = f32[] constant(0)
 e = f32[6,9] exponential(x)
 s = f32[6] reduce(e, z), dimensions={1}, to_apply=add
 sb = f32[6,9] broadcast(s), dimensions={0}
 y = f32[6,9] divide(e, sb)
"""


def test_fusion_joins_kernels_over_rows_that_need_one_reduction() -> None:
    module = fused(
        SHARED_SUM
        + """ q = f32[6,9] multiply(x, sb)
 m = f32[6] reduce(q, z), dimensions={1}, to_apply=add
 ROOT t = (f32[6,9], f32[6]) tuple(y, m)"""
    )
    assert kernels(module) == ["fusion"]


def test_fusion_keeps_kernels_apart_when_one_needs_what_another_gives() -> None:
    """The rows of `q` are those of `y` turned round, so `y` must be whole before."""
    module = fused(
        SHARED_SUM
        + """ v = f32[6,9] reverse(y), dimensions={0}
 q = f32[6,9] multiply(v, sb)
 m = f32[6] reduce(q, z), dimensions={1}, to_apply=add
 ROOT t = (f32[6,9], f32[6]) tuple(y, m)"""
    )
    assert kernels(module).count("fusion") > 1


def test_fusion_repeats_one_hot_encodings() -> None:
    module = fused(
        """labels = s32[6] parameter(0)
 x = f32[6,9] parameter(1)
 z = f32[] constant(0)
 i = s32[6,9] iota(), iota_dimension=1
 b = s32[6,9] broadcast(labels), dimensions={0}
 hit = pred[6,9] compare(i, b), direction=EQ
 hot = f32[6,9] convert(hit)
 y = f32[6,9] multiply(x, hot)
 s = f32[9] reduce(y, z), dimensions={0}, to_apply=add
 d = f32[6,9] subtract(x, hot)
 m = f32[6] reduce(d, z), dimensions={1}, to_apply=add
 ROOT t = (f32[9], f32[6]) tuple(s, m)"""
    )
    assert kernels(module) == ["fusion", "fusion"]


def test_fusion_computes_the_pieces_of_a_concatenation() -> None:
    module = fused(
        """x = f32[6,9] parameter(0)
 n = f32[6,9] negate(x)
 ROOT c = f32[6,18] concatenate(n, x), dimensions={1}"""
    )
    assert kernels(module) == ["fusion"]


def test_fusion_computes_no_expensive_piece_twice() -> None:
    module = fused(
        """x = f32[6] parameter(0)
 e = f32[6] exponential(x)
 b = f32[6,9] broadcast(e), dimensions={0}
 y = f32[6,3] parameter(1)
 ROOT c = f32[6,12] concatenate(b, y), dimensions={1}"""
    )
    assert kernels(module) == ["exponential", "fusion"]


CENTRED = """x = f32[60,9] parameter(0)
 z = f32[] constant(0)
 s = f32[9] reduce(x, z), dimensions={0}, to_apply=add
 b = f32[60,9] broadcast(s), dimensions={1}
 d = f32[60,9] subtract(x, b)
"""


def test_fusion_reduces_columns_once_for_a_reduction_of_what_needs_them() -> None:
    module = fused(CENTRED + "ROOT r = f32[9] reduce(d, z), dimensions={0}, to_apply=add")
    assert kernels(module) == ["fusion", "fusion"]
    reason = "another reduction of columns needs it for each element, and no kernel keeps columns for that"
    assert why(module, "s") == [f"not fused: {reason}"]


def test_fusion_reduces_columns_side_by_side() -> None:
    module = fused(
        """x = f32[60,9] parameter(0)
        z = f32[] constant(0)
        s = f32[9] reduce(x, z), dimensions={0}, to_apply=add
        y = f32[60,9] multiply(x, x)
        q = f32[9] reduce(y, z), dimensions={0}, to_apply=add
        ROOT r = f32[9] subtract(q, s)"""
    )
    assert kernels(module) == ["fusion"]


def powers_of_a_row(count: int) -> str:
    """x times a row that so many multiplications make, each of the row before and itself."""
    steps = "\n".join(f" v{n + 1} = f32[9] multiply(v{n}, v{n})" for n in range(count))
    return f"""x = f32[60,9] parameter(0)
 v0 = f32[9] parameter(1)
 {steps}
 b = f32[60,9] broadcast(v{count}), dimensions={{1}}
 ROOT r = f32[60,9] multiply(x, b)"""


def test_fusion_repeats_a_little_work_for_each_row() -> None:
    assert kernels(fused(powers_of_a_row(4))) == ["fusion"]


def test_fusion_does_a_row_of_much_work_once() -> None:
    module = fused(powers_of_a_row(12))
    assert kernels(module) == ["fusion", "fusion"]
    assert why(module, "v1")[0].startswith("fused")
    assert why(module, "v4") == ["not fused: the kernel would do more work again than it saves"]


def test_fusion_has_no_code_for_ever_more_indices() -> None:
    """Sums of neighbours of sums of neighbours, of which one element is wanted: 2, 4, 8, ... elements of each."""
    depth, size = 12, 20000
    lines = []
    for n in range(depth):
        left = size - n - 1
        lines += [
            f"a{n} = f32[{left}] slice(x{n}), slice={{[0:{left}]}}",
            f"b{n} = f32[{left}] slice(x{n}), slice={{[1:{left + 1}]}}",
            f"x{n + 1} = f32[{left}] add(a{n}, b{n})",
        ]
    module = fused(
        f"x0 = f32[{size}] parameter(0)\n" + "\n".join(lines) + f"\nROOT r = f32[1] slice(x{depth}), slice={{[0:1]}}"
    )
    assert why(module, "x5") == ["not fused: the kernel would read it at more indices than it should have code for"]
