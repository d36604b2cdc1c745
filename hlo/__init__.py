"""The IR: shapes, literals, operations, instructions, modules, their text and their meaning. Knows nothing else.

The names below are imported from their modules when they are first asked for.
"""

import importlib
from typing import TYPE_CHECKING

if not __name__.startswith("xlalite."):
    raise ImportError(
        f"import xlalite.hlo instead of {__name__}: under a second name every class of the room would exist twice"
    )

if TYPE_CHECKING:
    from xlalite.hlo.builder import Builder as Builder
    from xlalite.hlo.compare import compare_modules as compare_modules
    from xlalite.hlo.computation import HloComputation as HloComputation
    from xlalite.hlo.dtype import DType as DType
    from xlalite.hlo.errors import (
        EvaluationError as EvaluationError,
        LiteralError as LiteralError,
        ParseError as ParseError,
        ShapeError as ShapeError,
        VerificationError as VerificationError,
        XlaliteError as XlaliteError,
    )
    from xlalite.hlo.evaluator import evaluate as evaluate
    from xlalite.hlo.extraction import extract as extract
    from xlalite.hlo.fingerprint import structurally_equal as structurally_equal
    from xlalite.hlo.instruction import HloInstruction as HloInstruction, Metadata as Metadata
    from xlalite.hlo.literal import Literal as Literal
    from xlalite.hlo.loading import load as load
    from xlalite.hlo.module import HloModule as HloModule, ModuleConfig as ModuleConfig
    from xlalite.hlo.ops import OPS as OPS
    from xlalite.hlo.proto.serialization import parse_pbtxt as parse_pbtxt, parse_proto as parse_proto
    from xlalite.hlo.shape import Layout as Layout, ProgramShape as ProgramShape, Shape as Shape
    from xlalite.hlo.spmd import evaluate_spmd as evaluate_spmd
    from xlalite.hlo.statistics import collect_statistics as collect_statistics
    from xlalite.hlo.text import (
        ParseLimits as ParseLimits,
        PrintOptions as PrintOptions,
        parse as parse,
        parse_literal as parse_literal,
        parse_shape as parse_shape,
        print_computation as print_computation,
        print_instruction as print_instruction,
        print_module as print_module,
    )
    from xlalite.hlo.verifier import verify as verify

_NAMES = {
    "builder": "Builder",
    "compare": "compare_modules",
    "computation": "HloComputation",
    "dtype": "DType",
    "errors": "EvaluationError, LiteralError, ParseError, ShapeError, VerificationError, XlaliteError",
    "evaluator": "evaluate",
    "extraction": "extract",
    "fingerprint": "structurally_equal",
    "instruction": "HloInstruction, Metadata",
    "literal": "Literal",
    "loading": "load",
    "module": "HloModule, ModuleConfig",
    "ops": "OPS",
    "proto.serialization": "parse_pbtxt, parse_proto",
    "shape": "Layout, ProgramShape, Shape",
    "spmd": "evaluate_spmd",
    "statistics": "collect_statistics",
    "text": (
        "ParseLimits, PrintOptions, parse, parse_literal, parse_shape, print_computation, print_instruction, "
        "print_module"
    ),
    "verifier": "verify",
}
_MODULE_OF = {name: f"xlalite.hlo.{module}" for module, names in _NAMES.items() for name in names.split(", ")}

if not TYPE_CHECKING:  # A type checker would take every misspelt attribute for an export.

    def __getattr__(name: str) -> object:
        if name not in _MODULE_OF:
            raise AttributeError(f"module 'xlalite.hlo' has no attribute {name!r}")
        value = getattr(importlib.import_module(_MODULE_OF[name]), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted(_MODULE_OF)
