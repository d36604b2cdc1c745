"""A fuzz target for the parser, guided by coverage.

    python tests/hlo/text/fuzz_parser.py corpus/ -max_total_time=60

Needs atheris (not a dependency). Whatever the bytes, parsing gives a module or a ParseError; a module verifies, and its
text is a fixed point. `test_parser_fuzz.py` says the same with hypothesis and runs with the other tests.
"""

from __future__ import annotations

import sys
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["xlalite.hlo"]):
    from xlalite.hlo.errors import ParseError
    from xlalite.hlo.text import parse
    from xlalite.hlo.types.limits import ParseLimits
    from xlalite.hlo.verification.verifier import verify

HERE = Path(__file__).parent
# Large constants cost time and find nothing.
LIMITS = ParseLimits(literal_elements=1 << 16)


def one_input(data: bytes) -> None:
    """Reads the bytes as HLO; raises what no input may cause."""
    try:
        module = parse(data, limits=LIMITS)
    except ParseError:
        return
    verify(module)
    text = module.to_string("short_parsable")
    if parse(text, limits=LIMITS).to_string("short_parsable") != text:
        raise AssertionError(f"not a fixed point: {text}")


def write_seeds(corpus: Path) -> None:
    """Puts one small module for each operation into an empty corpus."""
    corpus.mkdir(parents=True, exist_ok=True)
    computations = (HERE / "computations.txt").read_text(encoding="utf-8")
    lines = (HERE / "op_records.txt").read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(line for line in lines if line and not line.startswith("#")):
        (corpus / f"{number:03}.hlo").write_text(line, encoding="utf-8")
    (corpus / "computations.hlo").write_text(computations, encoding="utf-8")


if __name__ == "__main__":
    directories = [argument for argument in sys.argv[1:] if not argument.startswith("-")]
    if directories and not any(Path(directories[0]).glob("*")):
        write_seeds(Path(directories[0]))
    atheris.Setup(sys.argv, one_input)
    atheris.Fuzz()
