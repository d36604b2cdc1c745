"""Compiles and runs modules of the tests' corpus, and prints as JSON what came out and what was done for it.

    python run_corpus.py TESTS [every] [file.hlo ...]

Every so many-th record of TESTS/op_cases.py (0: none), then files of HLO text or StableHLO. Arguments stand in an .npz
file of the same name or in comments `// argument SHAPE: LITERAL`, or are random. Printed are a digest of the results of
each module, what the cache did, and which parts of the compiler were loaded.
"""

import hashlib
import json
import re
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from xlalite.backends.base import CompileOptions, get_backend
from xlalite.backends.cpu.native.object_cache import default_cache
from xlalite.hlo.errors import ExecutionError
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.text import parse, parse_literal, parse_shape

COMPILER = (
    "xlalite.backends.cpu.compilation.pipeline",
    "xlalite.passes.core.pipeline",
    "xlalite.backends.cpu.emission.module_emitter",
)
"""What runs passes, and what writes LLVM IR."""

ARGUMENT = re.compile(r"^// argument (\S+): (.*)$", re.MULTILINE)
UNKNOWN_SIZES = {"set-dimension-size", "dynamic-reshape"}


def main(tests: str, every: str, *files: str) -> None:
    sys.path.insert(0, tests)
    results = {}
    for name, module, arguments in (*records(int(every)), *modules(files)):
        executable = get_backend("cpu").compile(module, CompileOptions())
        try:
            results[name] = digest(executable(*arguments))
        except ExecutionError as error:  # the evaluator cannot compute what it was called for
            results[name] = str(error)
    stats = default_cache().stats()
    loaded = [name for name in COMPILER if name in sys.modules]
    print(json.dumps({"results": results, "compiled": stats.misses, "problems": stats.problems, "loaded": loaded}))


def records(every: int) -> Iterator[tuple[str, HloModule, list[object]]]:
    from op_cases import OP_CASES

    chosen = [
        (f"{case.opcode}{number}-{dtype.value}", case, dtype)
        for number, case in enumerate(OP_CASES)
        for dtype in case.dtypes
        if case.is_local and case.is_deterministic and case.opcode not in UNKNOWN_SIZES
    ]
    for name, case, dtype in chosen[::every] if every else ():
        module = parse(case.text(dtype))
        yield name, module, case.arguments(module, dtype, np.random.default_rng(1))


def modules(files: tuple[str, ...]) -> Iterator[tuple[str, HloModule, list[object]]]:
    for file in map(Path, files):
        text = file.read_text(encoding="utf-8")
        module = parse(text)
        yield file.stem, module, arguments_of(file, text, module)


def arguments_of(file: Path, text: str, module: HloModule) -> list[object]:
    from random_modules import make_random_arguments

    if file.with_suffix(".npz").exists():
        return list(np.load(file.with_suffix(".npz")).values())
    written = ARGUMENT.findall(text)
    if written:
        return [parse_literal(literal, parse_shape(shape)).value.copy() for shape, literal in written]
    return make_random_arguments(module)


def digest(value: object) -> str:
    if isinstance(value, tuple):
        return hashlib.blake2b(" ".join(map(digest, value)).encode()).hexdigest()[:16]
    array = np.asarray(value)
    return hashlib.blake2b(f"{array.dtype} {array.shape}".encode() + array.tobytes()).hexdigest()[:16]


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    with np.errstate(all="ignore"):
        main(*sys.argv[1:])
