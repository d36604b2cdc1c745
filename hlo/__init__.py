"""The IR: shapes, literals, operations, instructions, modules, their text and their meaning. Knows nothing else.

The names below are imported from their modules when they are first asked for. Type checkers read `__init__.pyi`, which
is written from the table: `python -m pytest tests/test_public_names.py --bless`.
"""

import importlib

if not __name__.startswith("xlalite."):
    raise ImportError(
        f"import xlalite.hlo instead of {__name__}: under a second name every class of the room would exist twice"
    )

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
__all__ = sorted(_MODULE_OF)  # for `help(xlalite.hlo)`


def __getattr__(name: str) -> object:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'xlalite.hlo' has no attribute {name!r}")
    from xlalite.hlo.garbage import few_collections

    with few_collections:
        value = getattr(importlib.import_module(_MODULE_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
