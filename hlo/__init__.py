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
    from xlalite.hlo.building.builder import Builder as Builder
    from xlalite.hlo.building.extraction import extract as extract
    from xlalite.hlo.errors import (
        EvaluationError as EvaluationError,
        LiteralError as LiteralError,
        ParseError as ParseError,
        ShapeError as ShapeError,
        VerificationError as VerificationError,
        XlaliteError as XlaliteError,
    )
    from xlalite.hlo.evaluation.evaluator import evaluate as evaluate
    from xlalite.hlo.evaluation.spmd import evaluate_spmd as evaluate_spmd
    from xlalite.hlo.ir.computation import HloComputation as HloComputation
    from xlalite.hlo.ir.fingerprint import structurally_equal as structurally_equal
    from xlalite.hlo.ir.instruction import HloInstruction as HloInstruction, Metadata as Metadata
    from xlalite.hlo.ir.module import HloModule as HloModule, ModuleConfig as ModuleConfig
    from xlalite.hlo.loading import load as load
    from xlalite.hlo.ops import OPS as OPS
    from xlalite.hlo.proto.serialization import parse_pbtxt as parse_pbtxt, parse_proto as parse_proto
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
    from xlalite.hlo.tools.compare import compare_modules as compare_modules
    from xlalite.hlo.tools.statistics import collect_statistics as collect_statistics
    from xlalite.hlo.types.dtype import DType as DType
    from xlalite.hlo.types.literal import Literal as Literal
    from xlalite.hlo.types.shape import Layout as Layout, ProgramShape as ProgramShape, Shape as Shape
    from xlalite.hlo.verification.verifier import verify as verify

_NAMES = {
    "building.builder": "Builder",
    "tools.compare": "compare_modules",
    "ir.computation": "HloComputation",
    "types.dtype": "DType",
    "errors": "EvaluationError, LiteralError, ParseError, ShapeError, VerificationError, XlaliteError",
    "evaluation.evaluator": "evaluate",
    "building.extraction": "extract",
    "ir.fingerprint": "structurally_equal",
    "ir.instruction": "HloInstruction, Metadata",
    "types.literal": "Literal",
    "loading": "load",
    "ir.module": "HloModule, ModuleConfig",
    "ops": "OPS",
    "proto.serialization": "parse_pbtxt, parse_proto",
    "types.shape": "Layout, ProgramShape, Shape",
    "evaluation.spmd": "evaluate_spmd",
    "tools.statistics": "collect_statistics",
    "text": (
        "ParseLimits, PrintOptions, parse, parse_literal, parse_shape, print_computation, print_instruction, "
        "print_module"
    ),
    "verification.verifier": "verify",
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
