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


def write_pictures(folder: Path, scratch: Path) -> None:
    """All pictures into a folder; programs are put into another."""
    lesson = (_DOCS / "tutorials" / "graph_to_assembly.md").read_text(encoding="utf-8")
    block, loop = scratch / "block.hlo", scratch / "loop.hlo"
    block.write_text(lesson.split("```\n")[1], encoding="utf-8")
    loop.write_text(_LOOP, encoding="utf-8")
    commands = {
        "before": ["graph", str(block)],
        "near": ["graph", str(block), "powers", "--radius=1"],
        "after": ["opt", str(block), "--stage=svg", "--xla_cpu_max_isa=AVX2"],
        "loop": ["graph", str(loop)],
    }
    for name, words in commands.items():
        if main([*words, "-o", str(folder / f"{name}.svg")]):
            raise SystemExit(f"{name}.svg cannot be drawn")


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as scratch:
        write_pictures(_DOCS / "pictures", Path(scratch))
