"""What a kernel's parallel extent counts is shared out: no two units write the same element, all of them write all."""

import ctypes

import numpy as np
import pytest

from xlalite.backends.codegen.kernels.planner import KernelPlan, plan_kernel
from xlalite.backends.codegen.llvm import ModuleBuilder
from xlalite.backends.cpu.native.jit import compile_ir
from xlalite.backends.cpu.native.linker import link
from xlalite.backends.cpu.native.object_code import NEXT_MODULE, IrSource
from xlalite.hlo.evaluation.evaluator import evaluate
from xlalite.hlo.text import parse


def concatenation(first: str, second: str, result: str, dimension: int) -> str:
    pieces = f"f32[{first}] parameter(0)\n  b = f32[{second}] parameter(1)"
    return f"{pieces}\n  ROOT r = f32[{result}] concatenate(a, b), dimensions={{{dimension}}}"


PROGRAMS = [
    ("concatenate", concatenation("7,20,33", "2,20,33", "9,20,33", 0)),
    ("concatenate", concatenation("7,20,33", "7,3,33", "7,23,33", 1)),
    ("concatenate", concatenation("1,7,20,33", "1,7,3,33", "1,7,23,33", 2)),
    ("concatenate", concatenation("1,1,7,33", "1,1,4,33", "1,1,11,33", 2)),
    ("concatenate", concatenation("9000", "5001", "14001", 0)),
    ("concatenate", concatenation("1,9000", "1,5001", "1,14001", 1)),
    ("concatenate", concatenation("1,7,33", "1,7,3", "1,7,36", 2)),
    ("concatenate", concatenation("1,7,33", "0,7,33", "1,7,33", 0)),
    ("loop", "f32[1,1,9,77] parameter(0)\n  ROOT r = f32[1,1,9,77] tanh(a)"),
    ("loop", "f32[1,9000] parameter(0)\n  ROOT r = f32[1,9000] tanh(a)"),
    ("transpose", "f32[1,5,40,70] parameter(0)\n  ROOT r = f32[1,5,70,40] transpose(a), dimensions={0,1,3,2}"),
    ("transpose", "f32[1,40,900] parameter(0)\n  ROOT r = f32[1,900,40] transpose(a), dimensions={0,2,1}"),
]


@pytest.mark.parametrize(("kind", "program"), PROGRAMS)
def test_units_share_out_the_elements(kind: str, program: str, rng: np.random.Generator) -> None:
    module = parse(f"HloModule units\nENTRY main {{\n  a = {program}\n}}")
    root, builder = module.entry_computation.root, ModuleBuilder("units")
    plan = plan_kernel(root, (), 1, builder.target)
    assert isinstance(plan, KernelPlan)
    assert plan.decision.verdict == kind
    kernel = plan.kernel.emit(builder, "kernel")
    run = builder.function("run", kernel.return_type, kernel.parameter_types)
    run.call(kernel, *run.parameters)
    run.ret()
    code = link([compile_ir(IrSource(NEXT_MODULE.join((builder.text(), *builder.shared_texts))))])
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(code.address("run"))
    operands = [rng.standard_normal(p.shape.dims).astype(np.float32) for p in module.entry_computation.parameters]
    total, written = np.zeros(root.shape.dims, np.float32), np.zeros(root.shape.dims, int)
    for unit in range(plan.kernel.extent):
        result = np.full(root.shape.dims, np.nan, np.float32)
        function((ctypes.c_void_p * 8)(*(each.ctypes.data for each in (*operands, result))), unit, unit + 1)
        total = np.where(np.isnan(result), total, result)
        written += ~np.isnan(result)
    np.testing.assert_array_equal(written, 1)
    np.testing.assert_allclose(total, evaluate(module, *operands), rtol=1e-6)
