"""Makes the corpus anew: `python tests/hlo/compiled_corpus/make_corpus.py [FUNCTION...]`, where jax is installed.

Each file is a module as XLA's CPU compiler left it, below comments with arguments and with what jax computed from them.
What XLA makes of a function depends on the processor and on jaxlib's version; any outcome is a fair one.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from xlalite.hlo.text import format_literal
from xlalite.hlo.types.literal import Literal

FOLDER = Path(__file__).parent
_MODULE = "compiled_corpus_programs"


def load_programs() -> dict[str, Any]:
    """The table of functions; the folder of tests is no package."""
    if _MODULE in sys.modules:
        return sys.modules[_MODULE].PROGRAMS  # type: ignore[no-any-return]
    spec = importlib.util.spec_from_file_location(_MODULE, FOLDER / "programs.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    programs: dict[str, Any] = module.PROGRAMS
    return programs


def compile_program(name: str, program: Any) -> tuple[str, bytes, tuple[np.ndarray, ...], list[np.ndarray]]:
    """The text and the proto that XLA made of a function, arguments, and jax's results."""
    import jax
    from jaxlib import _hlo

    arguments = program.make_arguments(np.random.default_rng(zlib.crc32(name.encode())))
    with jax.enable_x64(program.x64):
        compiled = jax.jit(program.function, keep_unused=True).lower(*arguments).compile()
        results = [np.asarray(leaf) for leaf in jax.tree.leaves(compiled(*arguments))]
    module = compiled.runtime_executable().hlo_modules()[0]
    options = _hlo.HloPrintOptions()
    options.print_metadata = False
    options.print_large_constants = True
    options.print_extra_attributes = True
    return module.to_string(options), module.as_serialized_hlo_module_proto(), arguments, results


def corpus_text(name: str, program: Any) -> str:
    """The file of a function."""
    text, _, arguments, results = compile_program(name, program)
    lines = [_comment("argument", array) for array in arguments] + [_comment("result", array) for array in results]
    return "\n".join((*lines, "", text.rstrip(), ""))


def _comment(what: str, array: np.ndarray) -> str:
    literal = Literal(array)
    return f"// {what} {literal.shape.text()}: {format_literal(literal)}"


def main(names: list[str]) -> None:
    """Writes the files of the named functions, or of all."""
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    programs = load_programs()
    for name in names or programs:
        path = FOLDER / f"{name}.hlo"
        path.write_text(corpus_text(name, programs[name]), encoding="utf-8")
        print(f"{path.name}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main(sys.argv[1:])
