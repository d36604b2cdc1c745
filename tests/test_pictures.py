"""The pictures of the documents are those that the tools draw."""

import sys
from pathlib import Path

from test_docs import ROOT

sys.path.insert(0, str(ROOT / "docs"))

from pictures import write_pictures

DOCUMENTS = (ROOT / "docs" / "tutorials" / "graph_to_assembly.md", ROOT / "docs" / "gallery.md")


def test_pictures_are_what_the_tools_draw(tmp_path: Path) -> None:
    write_pictures(tmp_path, tmp_path)
    drawn = {path.name: path.read_text(encoding="utf-8") for path in tmp_path.glob("*.svg")}
    kept = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "docs" / "pictures").glob("*.svg")}
    assert drawn == kept, "python docs/pictures.py draws them again"
    words = "".join(path.read_text(encoding="utf-8") for path in DOCUMENTS)
    assert all(f"pictures/{name})" in words for name in kept)
