"""The documents: their links, their promises of size, and the code in the README."""

import ast
import os
import re
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
TUTORIALS = (ROOT / "docs" / "index.md", *sorted((ROOT / "docs" / "tutorials").glob("*.md")))
DOCUMENTS = (ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md")), *TUTORIALS[1:])

# What the pages on passes and kernels add, and this repository has not.
OF_EXAMPLES = {
    *("passes/simplify/select_sinker.py", "tests/passes/simplify/test_select_sinker.py"),
    *(
        "backends/codegen/kernels/pad.py",
        "PAD",
        "SelectSinker",
        "Distribute",
        "_may_sink",
        "_sink",
        "lows",
        "pads_around",
    ),
}


@dataclass(frozen=True)
class Block:
    """A fenced block of a document: its language, its text, and the line it begins at."""

    language: str
    text: str
    line: int


def blocks_of(document: Path) -> list[Block]:
    content = document.read_text(encoding="utf-8")
    found = re.finditer(r"^```(\w*)\n(.*?)^```$", content, re.MULTILINE | re.DOTALL)
    return [Block(match[1], match[2], content.count("\n", 0, match.start()) + 1) for match in found]


def programs() -> list[tuple[Block, str | None]]:
    """The README's Python blocks, each with the output that a `text` block right after it shows."""
    blocks = blocks_of(ROOT / "README.md")
    following = [*blocks[1:], Block("", "", 0)]
    return [
        (block, after.text if after.language == "text" else None)
        for block, after in zip(blocks, following, strict=True)
        if block.language == "python"
    ]


def without_times(text: str) -> str:
    return re.sub(r"[0-9.]+ (ms|s|µs)\b", r"T \1", text)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_to_files_resolve(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    targets = [target for target in re.findall(r"\]\(([^)#]+)[^)]*\)", text) if "://" not in target]
    assert [target for target in targets if not (document.parent / target).exists()] == []


def test_index_leads_to_every_page() -> None:
    named = (ROOT / "docs" / "index.md").read_text(encoding="utf-8").split()
    pages = [
        path.relative_to(ROOT / "docs").with_suffix("") for path in DOCUMENTS if path.is_relative_to(ROOT / "docs")
    ]
    assert [page for page in map(str, pages) if page not in {*named, "index"}] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_files_and_rooms_that_are_named_exist(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:hlo|passes|backends|xlalite|tests|docs)/[\w/.]*)`", text))
    assert sorted(name for name in named - OF_EXAMPLES if not (ROOT / name).exists()) == []


def test_architecture_fits_its_size() -> None:
    assert len((ROOT / "docs" / "architecture.md").read_text(encoding="utf-8").splitlines()) <= 200


def test_architecture_describes_every_room() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rooms = [f"{room}/" for room in ("hlo", "passes", "backends")]
    own = [path for path in (ROOT / "xlalite").iterdir() if path.is_dir() and not path.is_symlink()]
    rooms += [f"xlalite/{path.name}/" for path in own if not path.name.startswith("__")]
    assert [room for room in rooms if f"`{room}`" not in text] == []


@pytest.mark.parametrize(("block", "output"), programs(), ids=lambda value: getattr(value, "line", ""))
def test_code_in_the_readme_runs(block: Block, output: str | None, tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", block.text]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"README.md:{block.line}\n{done.stderr}"
    if output is not None:
        assert without_times(done.stdout.rstrip()) == without_times(output.rstrip()), (
            f"README.md:{block.line} shows another output"
        )


@pytest.mark.parametrize("document", TUTORIALS, ids=lambda path: path.name)
def test_code_in_the_tutorials_runs(document: Path, tmp_path: Path) -> None:
    """Programs and commands run in order; what `a file NAME:` announces is written, and `text` is compared."""
    content = document.read_text(encoding="utf-8")
    announced = {
        content.count("\n", 0, match.end()) + 3: match[1] for match in re.finditer(r"file `(.*)`:$", content, re.M)
    }
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    commands = {"python": [sys.executable, "-c"], "sh": ["bash", "-ec"]}
    shown = ""
    for block in blocks_of(document):
        where = f"{document.name}:{block.line}"
        if block.line in announced:
            (tmp_path / announced[block.line]).write_text(block.text, encoding="utf-8")
        elif block.language in commands:
            command = [*commands[block.language], block.text]
            done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
            assert done.returncode == 0, f"{where}\n{done.stderr}"
            shown = done.stdout
        elif block.language == "text":
            assert without_times(shown.rstrip()) == without_times(block.text.rstrip()), f"{where} shows another output"


@cache
def words_of_sources() -> frozenset[str]:
    rooms = ("hlo", "passes", "backends", "xlalite", "tests")
    files = [path for room in rooms for path in (ROOT / room).rglob("*.py") if path.name != Path(__file__).name]
    return frozenset(word for path in files for word in re.findall(r"\w+", path.read_text(encoding="utf-8")))


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_code_in_documents_uses_what_exists(document: Path) -> None:
    """Excerpts cannot run, but each is Python, and what it names is somewhere: a name that went away is noticed."""
    for block in blocks_of(document):
        if block.language == "python":
            tree = ast.parse(textwrap.dedent(block.text))
            made = {
                node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
            }
            made |= {node.name for node in ast.walk(tree) if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
            used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
            used |= {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
            missing = used - made - words_of_sources() - OF_EXAMPLES
            assert not missing, f"{document.name}:{block.line} uses {sorted(missing)}"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_scripts_in_documents_exist(document: Path) -> None:
    scripts = set(re.findall(r"python ((?:tests|xlalite)/[\w/.]+\.py)", document.read_text(encoding="utf-8")))
    assert [script for script in sorted(scripts) if not (ROOT / script).exists()] == []


def test_what_the_commands_of_the_readme_write_is_no_part_of_the_repository() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    written = set(re.findall(r"--(?:to|xla_dump_to)[ =](\w+)", text))
    ignored = (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()
    assert written
    assert [name for name in sorted(written) if f"{name}/" not in ignored] == []
