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
