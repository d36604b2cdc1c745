"""Fusion of programs that are too long to be shown; `tests/filetests/fusion/` has the others."""

from xlalite.hlo.text import parse
from xlalite.passes.fusion import Fusion


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
    body = "\n".join([f"x0 = f32[{size}] parameter(0)", *lines, f"ROOT r = f32[1] slice(x{depth}), slice={{[0:1]}}"])
    module = parse(f"ENTRY e {{\n{body}\n}}")
    Fusion().run(module)
    assert [f"{d.verdict}: {d.reason}" for d in module.decisions if d.subject[0] == "x5"] == [
        "not fused: the kernel would read it at more indices than it should have code for"
    ]


def test_a_loop_without_a_reduction_has_no_results_of_rows() -> None:
    """A loop takes rows for the sake of a division; the sums that would make it a row kernel are needed before it."""
    module = parse("""
        add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }
        ENTRY e {
          x = f32[128,10] parameter(0)
          place = s32[128] parameter(1)
          zero = f32[] constant(0)
          ten = s32[] constant(10)
          tens = s32[128] broadcast(ten), dimensions={}
          kept = s32[128] remainder(place, tens)
          wanted = s32[128,10] broadcast(kept), dimensions={0}
          columns = s32[128,10] iota(), iota_dimension=1
          is_there = pred[128,10] compare(columns, wanted), direction=EQ
          sums = f32[128] reduce(x, zero), dimensions={1}, to_apply=add
          logs = f32[128] log(sums)
          total = f32[] reduce(logs, zero), dimensions={0}, to_apply=add
          totals = f32[128] broadcast(total), dimensions={}
          inverse = f32[128] divide(totals, sums)
          inverses = f32[128,10] broadcast(inverse), dimensions={0}
          chosen = f32[128,10] select(is_there, inverses, x)
          ROOT both = (f32[128,10], s32[128]) tuple(chosen, kept)
        }""")
    Fusion().run(module)
    assert ("kept", "chosen", "not fused") in [(*d.subject, d.verdict) for d in module.decisions]
    fusions = [instruction for instruction in module.instructions() if instruction.opcode == "fusion"]
    assert all(len({shape.dims for _, shape in fusion.shape.leaves()}) == 1 for fusion in fusions)


def test_constants_are_in_every_kernel_that_needs_them() -> None:
    """A polynomial with more coefficients than a kernel has instructions."""
    lines = []
    for n in range(200):
        lines += [
            f"c{n} = f32[] constant({n}.5)",
            f"b{n} = f32[9] broadcast(c{n}), dimensions={{}}",
            f"p{n} = f32[9] multiply(x, s{n})",
            f"s{n + 1} = f32[9] add(p{n}, b{n})",
        ]
    body = "\n".join(["x = f32[9] parameter(0)", "s0 = f32[9] negate(x)", *lines, "ROOT r = f32[9] sine(s200)"])
    module = parse(f"ENTRY e {{\n{body}\n}}")
    Fusion().run(module)
    fusions = [one for one in module.entry_computation.instructions if one.opcode == "fusion"]
    assert len(fusions) == 4
    assert all(one.called_computations[0].root.opcode != "broadcast" for one in fusions)
    assert all(len(one.operands) <= 2 for one in fusions)
