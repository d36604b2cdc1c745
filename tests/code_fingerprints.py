"""Prints a digest of the optimised HLO and of the LLVM IR of every operation's records and of the stored programs.

`python tests/code_fingerprints.py > before.txt`: what only moves or renames things leaves the lines as they are.
"""

import hashlib
from collections.abc import Iterator
from pathlib import Path

from op_cases import OP_CASES

from xlalite.backends.base import CompileOptions, get_backend
from xlalite.hlo.errors import XlaliteError
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.text import parse

STAGES = ("hlo", "llvm-before-optimizations")
PROGRAMS = ("filetests/*/*.hlo", "hlo/compiled_corpus/*.hlo")


def modules() -> Iterator[tuple[str, HloModule]]:
    for number, case in enumerate(OP_CASES):
        for dtype in case.dtypes:
            yield f"{case.opcode}{number}-{dtype.value}", parse(case.text(dtype))
    folder = Path(__file__).parent
    for path in sorted(path for pattern in PROGRAMS for path in folder.glob(pattern)):
        for number, text in enumerate(path.read_text(encoding="utf-8").split("// -----")):
            try:
                yield f"{path.relative_to(folder).as_posix()}#{number}", parse(text)
            except XlaliteError:
                continue  # a text that is there to be refused


def digest(module: HloModule, stage: str) -> str:
    options = CompileOptions(num_threads=2)
    try:
        text = get_backend("cpu").compile_to(stage, module.clone(), options).text
    except XlaliteError as error:
        text = f"{type(error).__name__}: {error}"
    return hashlib.sha256(text.encode()).hexdigest()[:16]


if __name__ == "__main__":
    for name, module in modules():
        print(name, *(digest(module, stage) for stage in STAGES))
