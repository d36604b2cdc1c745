"""Modules as XLA's CPU compiler left them: read, written in every form, and run on both backends with jax's results.

They are scheduled, and made of fusions, copies, bitcasts between layouts and calls of XLA's own library targets.
`make_corpus.py` makes the files out of the functions in `programs.py`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from xlalite.hlo.proto.serialization import parse_proto
from xlalite.hlo.text import parse
from xlalite.hlo.verification.verifier import verify

FOLDER = Path(__file__).parent
FILES = sorted(FOLDER.glob("*.hlo"))
every_file = pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])


def test_the_corpus_is_large_enough_and_says_nothing_of_where_it_was_made() -> None:
    assert len(FILES) >= 40
    for path in FILES:
        text = path.read_text(encoding="utf-8")
        assert "is_scheduled=true" in text, path
        assert "metadata=" not in text, path
        assert "source_file" not in text, path
        assert "{...}" not in text, path


def test_the_corpus_has_what_the_compiler_makes() -> None:
    opcodes, kinds, targets = set(), set(), set()
    for path in FILES:
        for computation in parse(path.read_text(encoding="utf-8")).computations():
            for instruction in computation.instructions:
                opcodes.add(instruction.opcode)
                if instruction.opcode == "fusion":
                    kinds.add(instruction.attrs.kind.value)
                if instruction.opcode == "custom-call":
                    targets.add(instruction.attrs.custom_call_target)
    assert len(opcodes) >= 70
    assert kinds == {"kLoop", "kCustom"}
    assert {
        "call",
        "copy",
        "bitcast",
        "while",
        "conditional",
        "fft",
        "sort",
        "scatter",
        "dot",
        "convolution",
    } <= opcodes
    assert {"TopK", "lapack_sgesdd_ffi", "lapack_sgetrf_ffi", "lapack_ssyevd_ffi"} <= targets


@every_file
def test_compiled_module_evaluates_to_jax_s_results(path: Path, compiled_program) -> None:
    program = compiled_program(path)
    module = parse(program.text)
    verify(module)
    assert parse(module.to_string()).to_string() == module.to_string()
    again = parse_proto(module.to_proto())
    verify(again)
    assert again.config.is_scheduled
    program.check(again, "interpreter")


@every_file
def test_compiled_module_compiles_to_jax_s_results(path: Path, compiled_program) -> None:
    program = compiled_program(path)
    program.check(parse(program.text), "cpu")


@pytest.mark.slow
@every_file
def test_compiled_module_runs_as_it_is(path: Path, compiled_program) -> None:
    """XLA's fusions are kept, and those that no kernel of ours computes are evaluated."""
    program = compiled_program(path)
    program.check(parse(program.text), "cpu", optimize=False)
