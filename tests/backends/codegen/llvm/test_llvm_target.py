import llvmlite.binding as llvm
import numpy as np
import pytest
from llvm_machine import machine_for

from xlalite.backends.base import CompileOptions, get_backend
from xlalite.backends.codegen.llvm import F32, ModuleBuilder, TargetInfo, target
from xlalite.backends.cpu.native import jit_options
from xlalite.backends.cpu.native.jit_options import processor
from xlalite.hlo.errors import FlagError
from xlalite.hlo.text import parse
from xlalite.passes.core.debug_options import DebugOptions


def test_host_describes_this_machine():
    host = TargetInfo.host()
    assert host is TargetInfo.host()
    assert host.triple == llvm.get_process_triple()
    assert host.lanes(32) == host.vector_bits // 32
    assert host.lanes(1) == host.vector_bits // 8
    assert host.lanes(4096) == 1
    assert host.cache_bytes[0] >= 4096
    assert host.cache_bytes[0] <= host.cache_bytes[1] <= max(host.cache_bytes)
    assert all(host.has(feature) for feature in host.features)
    assert host.create_machine()


def test_vector_registers_follow_the_features():
    plain = TargetInfo.of("x86_64-unknown-linux-gnu", "x86-64")
    assert (plain.vector_bits, plain.vector_registers, plain.has_fma) == (128, 16, False)
    avx2 = TargetInfo.of("x86_64-unknown-linux-gnu", "x86-64-v3", ("avx", "avx2", "fma"))
    assert (avx2.vector_bits, avx2.vector_registers, avx2.has_fma) == (256, 16, True)
    avx512 = TargetInfo.of("x86_64-unknown-linux-gnu", "x86-64-v4", ("avx", "avx2", "fma", "avx512f", "avx512vl"))
    assert (avx512.vector_bits, avx512.vector_registers) == (512, 32)
    arm = TargetInfo.of("aarch64-unknown-linux-gnu")
    assert (arm.vector_bits, arm.vector_registers, arm.has_fma) == (128, 32, True)


@pytest.mark.skipif(not TargetInfo.host().triple.startswith("x86_64"), reason="instruction sets of x86-64")
@pytest.mark.parametrize(
    ("isa", "registers", "absent"),
    [("SSE2", "xmm", ("ymm", "zmm", "vmov")), ("SSE4_2", "xmm", ("ymm", "vmov")), ("AVX2", "ymm", ("zmm",))],
)
def test_code_keeps_to_an_instruction_set(isa, registers, absent):
    if isa == "AVX2" and not TargetInfo.host().has("avx2"):
        pytest.skip("this machine has no AVX2")
    module = parse("HloModule m\nENTRY e { x = f32[99] parameter(0)\n ROOT r = f32[99] exponential(x) }")
    executable = get_backend("cpu").compile(module, CompileOptions(debug=DebugOptions(cpu_max_isa=isa)))
    assembly = executable.as_text("asm")
    assert registers in assembly
    assert not any(name in assembly for name in absent)
    np.testing.assert_allclose(executable(np.ones(99, np.float32)), np.full(99, np.e), rtol=1e-6)


@pytest.mark.parametrize("may", [True, False])
def test_registers_of_matrices_are_used_by_leave_of_the_system(monkeypatch, may):
    monkeypatch.setattr(target, "_host_features", lambda: "+avx512f,+amx-tile,+amx-int8,-amx-fp16")
    monkeypatch.setattr(target, "may_use_matrix_registers", lambda: may)
    monkeypatch.setattr(jit_options, "may_use_matrix_registers", lambda: may)
    host = target._host.__wrapped__()
    assert host.features == (("amx-int8", "amx-tile", "avx512f") if may else ("avx512f",))
    assert ("+amx-tile" if may else "-amx-tile") in host.feature_string
    assert processor().endswith("without matrix registers") is not may


def test_an_unknown_instruction_set_is_refused():
    with pytest.raises(FlagError, match=r"xla_cpu_max_isa: expected one of SSE2, .*, found 'AVX3'"):
        DebugOptions(cpu_max_isa="AVX3")


def test_code_for_another_machine_is_emitted():
    module = ModuleBuilder("arm", TargetInfo.of("aarch64-unknown-linux-gnu"))
    fb = module.function("f", F32, (F32,))
    fb.ret(fb.mul_add(fb.parameters[0], 2.0, 1.0))
    parsed = llvm.parse_assembly(module.text())
    assert "fmadd" in machine_for(module.target).emit_assembly(parsed)
