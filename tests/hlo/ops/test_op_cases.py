"""The records of all operations: complete, valid, unchanged by a trip through text, evaluable, and as XLA has them."""

import importlib
from pathlib import Path

import numpy as np
import pytest
from nested_arrays import leaves

from xlalite.hlo import ops
from xlalite.hlo.errors import EvaluationError
from xlalite.hlo.evaluation.evaluator import evaluate
from xlalite.hlo.ir.fingerprint import fingerprint
from xlalite.hlo.ir.op import Trait
from xlalite.hlo.ops import OPS
from xlalite.hlo.text import parse
from xlalite.hlo.types.literal import Token
from xlalite.hlo.types.shape import Shape
from xlalite.hlo.verification.verifier import verify


def test_every_operation_has_a_record(op_cases):
    missing = sorted(set(OPS) - {case.opcode for case in op_cases})
    assert not missing, f"tests/op_cases.txt has no record for {missing}"


def test_every_family_is_listed_with_its_operations():
    names = {path.stem for path in Path(ops.__file__).parent.glob("[a-z]*.py")}
    families = [importlib.import_module(f"{ops.__name__}.{name}") for name in sorted(names)]
    declared = {op.name: op for family in families for op in family.OPS}
    assert declared == dict(OPS)
    assert "no-such-operation" not in OPS
    assert OPS.get("no-such-operation") is None


def test_records_are_about_what_they_say(op_cases):
    for case in op_cases:
        module = parse(case.text(case.dtypes[0]))
        opcodes = {instruction.opcode for instruction in module.instructions()}
        assert case.opcode in opcodes


def test_random_records_are_those_of_operations_that_must_not_be_merged(op_cases):
    for case in op_cases:
        assert OPS[case.opcode].has(Trait.NON_DETERMINISTIC) != case.is_deterministic, case.opcode


def is_of_shape(value: object, shape: Shape) -> bool:
    if shape.is_tuple:
        return isinstance(value, tuple) and all(map(is_of_shape, value, shape.elements))
    if shape.is_token:
        return isinstance(value, Token)
    assert isinstance(value, np.ndarray)
    return value.dtype == shape.dtype.numpy and (shape.is_dynamic or value.shape == shape.dims)


def test_record_verifies_survives_text_and_evaluates_to_its_shape(op_case, op_dtype, rng):
    module = parse(op_case.text(op_dtype))
    verify(module)
    again = parse(module.to_string())
    assert fingerprint(again) == fingerprint(module)
    arguments = op_case.arguments(module, op_dtype, rng)
    if not op_case.is_local:
        with pytest.raises(EvaluationError):
            evaluate(module, *arguments)
        return
    value = evaluate(module, *arguments)
    assert is_of_shape(value, module.entry_computation.root.shape)
    if op_case.is_deterministic:
        op_case.check(evaluate(again, *arguments), value)


# What XLA's CPU compiler (of jaxlib 0.10) cannot run, or cannot run alone, and what it does otherwise on purpose.
BEYOND_XLA = {
    "after-all": "takes no tokens from Python",
    "batch-norm-grad": "rounds epsilon to f32",
    "batch-norm-inference": "rounds epsilon to f32",
    "batch-norm-training": "rounds epsilon to f32",
    "bitcast": "only its own passes may make one",
    "set-dimension-size": "returns the bound's size",
}
# What jaxlib 0.10 refuses to compile, and with which words.
REFUSED_BY_XLA = {
    **{name: f"UNIMPLEMENTED: {name}" for name in ("acos", "acosh", "asin", "asinh", "atanh", "cosh", "sinh")},
    "atan": "Unknown opcode: atan",
    "mulhi": "unregistered operation 'mhlo.unknown'",
    "scaled-dot": "unregistered operation 'mhlo.unknown'",
    "ragged-dot": "`ragged-dot` is not supported by XLA:CPU",
    "stochastic-convert": "Unsupported stochastic convert",
    "copy-start": "mhlo.async_bundle",
    "copy-done": "`copy-start` is not supported by XLA:CPU",
    "async-start": "mhlo.async_bundle",
    "async-update": "mhlo.async_bundle",
    "async-done": "expects the shape of output to match the async shape",
}


@pytest.mark.oracle
@pytest.mark.slow
def test_record_evaluates_as_xla_computes_it(op_case, rng, run_with_xla):
    if not (op_case.is_local and op_case.is_deterministic) or op_case.opcode in BEYOND_XLA:
        pytest.skip(BEYOND_XLA.get(op_case.opcode, "nothing to compare"))
    if OPS[op_case.opcode].has(Trait.COLLECTIVE):
        pytest.skip("XLA wants several devices")
    dtype = op_case.dtypes[0]  # XLA has gaps and faults in rarer types
    module = parse(op_case.text(dtype))
    arguments = op_case.arguments(module, dtype, rng)
    expected = leaves(evaluate(module, *arguments))
    try:
        found = run_with_xla(module.to_string("short_parsable"), *leaves(tuple(arguments)))
    except Exception as error:  # jaxlib's own class, without a public name
        expected_words = REFUSED_BY_XLA.get(op_case.opcode)
        if expected_words is None or expected_words not in str(error):
            raise
        pytest.skip(f"XLA refuses: {expected_words}")
    op_case.check(tuple(found), tuple(expected))
