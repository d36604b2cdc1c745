import ctypes
import functools
import itertools

import llvmlite.binding as llvm
import numpy as np
import pytest
from llvm_machine import machine_for

from xlalite.backends.codegen.llvm import F32, F64, I64, PTR, VOID, ModuleBuilder, TargetInfo, widened
from xlalite.backends.codegen.math import MATH_FUNCTIONS, emit_math

_TYPES = {np.dtype(np.float32): F32, np.dtype(np.float64): F64}
_X86 = "x86_64-unknown-linux-gnu"
_NUMBERS = itertools.count()


@functools.cache
def _target(name):
    match name:
        case "host":
            return TargetInfo.host()
        case "avx2":
            return TargetInfo.of(_X86, "haswell", ("avx", "avx2", "fma", "f16c", "bmi", "bmi2"))
        case "baseline":
            return TargetInfo.of(_X86, "x86-64")


def emit_kernel(fb, type_, lanes, operand_count, emit):
    """Applies `emit` to arrays whose length is a multiple of the lane count."""
    *sources, target, count = fb.parameters
    with fb.loop(0, count, lanes) as i:
        operands = [fb.load(widened(type_, lanes), fb.gep(type_, source, i), align=1) for source in sources]
        result = emit(fb, *operands)
        fb.store(result, fb.gep(result.type.scalar, target, i), align=1)
    fb.ret()


def compile_kernel(type_, lanes, operand_count, emit, target="host"):
    module = ModuleBuilder("math", _target(target))
    fb = module.function("kernel", VOID, (*[PTR] * operand_count, PTR, I64))
    emit_kernel(fb, type_, lanes, operand_count, emit)
    parsed = llvm.parse_assembly(module.text())
    parsed.verify()
    lljit = llvm.create_lljit_compiler(machine_for(module.target))
    builder = llvm.JITLibraryBuilder().add_current_process().add_ir(str(parsed)).export_symbol("kernel")
    library = builder.link(lljit, f"math{next(_NUMBERS)}")
    prototype = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * (operand_count + 1), ctypes.c_int64)
    function = prototype(library["kernel"])

    def run(*arrays, result=None):
        size = arrays[0].size
        padding = -size % lanes
        padded = [np.concatenate([a, np.ones(padding, a.dtype)]) for a in arrays]
        out = np.empty(size + padding, arrays[0].dtype if result is None else result)
        function(*[a.ctypes.data for a in padded], out.ctypes.data, out.size)
        return out[:size]

    run.keep_alive = (lljit, library)
    return run


@functools.cache
def _math_kernel(name, type_, lanes, target):
    arity = MATH_FUNCTIONS[name].arity
    return compile_kernel(type_, lanes, arity, lambda fb, *operands: emit_math(fb, name, *operands), target)


@pytest.fixture(scope="session")
def apply_math():
    """Runs a function on arrays of f32 or f64."""

    def apply(name, *arrays, lanes=None, target="host"):
        type_ = _TYPES[arrays[0].dtype]
        lanes = _target(target).lanes(type_.bits) if lanes is None else lanes
        return _math_kernel(name, type_, lanes, target)(*arrays)

    return apply


@pytest.fixture(scope="session")
def make_kernel():
    return compile_kernel


def _ordered(numbers):
    """Integers that count floats in order: neighbours differ by 1, both zeros are 0."""
    signed = numbers.view({4: np.int32, 8: np.int64}[numbers.itemsize]).astype(np.int64)
    lowest = np.int64(-(2**31) if numbers.itemsize == 4 else -(2**63))
    return np.where(signed < 0, lowest - signed, signed)


def _distance(a, b):
    both_nan = np.isnan(a) & np.isnan(b)
    one_nan = np.isnan(a) != np.isnan(b)
    with np.errstate(over="ignore"):
        steps = np.abs(_ordered(a) - _ordered(b))
    return np.where(both_nan, 0, np.where(one_nan, 2**40, steps))


@pytest.fixture(scope="session")
def ulp_distance():
    """Representable numbers from one array's elements to the other's; NaN equals NaN only."""
    return _distance
