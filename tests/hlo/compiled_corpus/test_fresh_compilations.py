"""The functions of the corpus, compiled now by the jaxlib that is installed: text and proto run with jax's results."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

from xlalite.hlo.proto.serialization import parse_proto
from xlalite.hlo.text import parse
from xlalite.hlo.verification.verifier import verify

FOLDER = Path(__file__).parent
NAMES = sorted(path.stem for path in FOLDER.glob("*.hlo"))
pytestmark = [pytest.mark.oracle, pytest.mark.slow]


@pytest.fixture(scope="session")
def corpus() -> Any:
    """`make_corpus.py` as a module; the folder of tests is no package."""
    pytest.importorskip("jax")
    spec = importlib.util.spec_from_file_location("make_compiled_corpus", FOLDER / "make_corpus.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_function_has_a_file(corpus: Any) -> None:
    assert sorted(corpus.load_programs()) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_what_jaxlib_makes_now_runs(name: str, corpus: Any, make_program) -> None:
    text, proto, arguments, results = corpus.compile_program(name, corpus.load_programs()[name])
    program = make_program(text, arguments, results)
    module = parse(text)
    verify(module)
    program.check(module, "interpreter")
    from_proto = parse_proto(proto)
    verify(from_proto)
    program.check(from_proto, "interpreter")
    program.check(from_proto, "cpu")
