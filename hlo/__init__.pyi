# Written by `python -m pytest tests/test_public_names.py --bless` from the tables of names.

from xlalite.hlo.building.builder import Builder as Builder
from xlalite.hlo.building.extraction import extract as extract
from xlalite.hlo.errors import (
    EvaluationError as EvaluationError, LiteralError as LiteralError, ParseError as ParseError,
    ShapeError as ShapeError, VerificationError as VerificationError, XlaliteError as XlaliteError
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
    ParseLimits as ParseLimits, PrintOptions as PrintOptions, parse as parse, parse_literal as parse_literal,
    parse_shape as parse_shape, print_computation as print_computation, print_instruction as print_instruction,
    print_module as print_module
)
from xlalite.hlo.tools.compare import compare_modules as compare_modules
from xlalite.hlo.tools.statistics import collect_statistics as collect_statistics
from xlalite.hlo.types.dtype import DType as DType
from xlalite.hlo.types.literal import Literal as Literal
from xlalite.hlo.types.shape import Layout as Layout, ProgramShape as ProgramShape, Shape as Shape
from xlalite.hlo.verification.verifier import verify as verify

