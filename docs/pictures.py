"""Draws the pictures of the documents: `python docs/pictures.py`, after which `git diff` shows what has changed."""

from __future__ import annotations

from pathlib import Path

from xlalite.cli.main import main

_DOCS = Path(__file__).parent
_LOOP = """HloModule loop
body { x = f32[] parameter(0)
  ROOT y = f32[] multiply(x, x) }
condition { x = f32[] parameter(0)
  limit = f32[] constant(1000)
  ROOT small = pred[] compare(x, limit), direction=LT }
ENTRY main { x = f32[] parameter(0)
  ROOT large = f32[] while(x), condition=condition, body=body }
"""
_RESIDUAL = """HloModule residual
ENTRY main { x = f32[8,32,32,64] parameter(0)
  w1 = f32[3,3,64,64] parameter(1)
  w2 = f32[3,3,64,64] parameter(2)
  scale = f32[64] parameter(3)
  zero = f32[] constant(0)
  zeros = f32[8,32,32,64] broadcast(zero), dimensions={}
  inner = f32[8,32,32,64] convolution(x, w1), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f
  first = f32[8,32,32,64] maximum(inner, zeros)
  outer = f32[8,32,32,64] convolution(first, w2), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f
  scales = f32[8,32,32,64] broadcast(scale), dimensions={3}
  scaled = f32[8,32,32,64] multiply(outer, scales)
  sum = f32[8,32,32,64] add(scaled, x)
  ROOT second = f32[8,32,32,64] maximum(sum, zeros) }
"""
_LAYERS = 60


def _deep() -> str:
    """Many layers of a product, a sum and a hyperbolic tangent."""
    dims = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
    lines = ["HloModule deep", "ENTRY main { v0 = f32[32,64] parameter(0)"]
    for layer in range(1, _LAYERS + 1):
        lines += [
            f"  w{layer} = f32[64,64] parameter({2 * layer - 1})",
            f"  b{layer} = f32[64] parameter({2 * layer})",
            f"  d{layer} = f32[32,64] dot(v{layer - 1}, w{layer}), {dims}",
            f"  s{layer} = f32[32,64] broadcast(b{layer}), dimensions={{1}}",
            f"  a{layer} = f32[32,64] add(d{layer}, s{layer})",
            f"  v{layer} = f32[32,64] tanh(a{layer})",
        ]
    return "\n".join([*lines, "}"])


def write_pictures(folder: Path, scratch: Path) -> None:
    """All pictures into a folder; programs are put into another."""
    lesson = (_DOCS / "tutorials" / "graph_to_assembly.md").read_text(encoding="utf-8")
    programs = {"block": lesson.split("```\n")[1], "loop": _LOOP, "residual": _RESIDUAL, "deep": _deep()}
    block, loop, residual, deep = (scratch / f"{name}.hlo" for name in programs)
    for name, text in programs.items():
        (scratch / f"{name}.hlo").write_text(text, encoding="utf-8")
    commands = {
        "before": ["graph", str(block)],
        "near": ["graph", str(block), "powers", "--radius=1"],
        "after": ["opt", str(block), "--stage=svg", "--xla_cpu_max_isa=AVX2"],
        "loop": ["graph", str(loop)],
        "residual": ["graph", str(residual)],
        "ways": ["graph", str(residual), "--from=first", "--to=sum"],
        "deep": ["graph", str(deep)],
    }
    for name, words in commands.items():
        if main([*words, "-o", str(folder / f"{name}.svg")]):
            raise SystemExit(f"{name}.svg cannot be drawn")


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as scratch:
        write_pictures(_DOCS / "pictures", Path(scratch))
