"""The pictures of the documents are those that the tools draw."""

import sys
from pathlib import Path

from test_docs import ROOT

sys.path.insert(0, str(ROOT / "docs"))

from pictures import write_pictures

LESSON = ROOT / "docs" / "tutorials" / "graph_to_assembly.md"


def test_pictures_are_what_the_tools_draw(tmp_path: Path) -> None:
    write_pictures(tmp_path, tmp_path)
    drawn = {path.name: path.read_text(encoding="utf-8") for path in tmp_path.glob("*.svg")}
    kept = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "docs" / "pictures").glob("*.svg")}
    assert drawn == kept, "python docs/pictures.py draws them again"
    assert all(f"(../pictures/{name})" in LESSON.read_text(encoding="utf-8") for name in kept)
