import llvmlite.binding as llvm

from xlalite.backends.cpu.llvm import F32, ModuleBuilder, TargetInfo


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
    assert host.create_machine(jit=True).triple


def test_vector_registers_follow_the_features():
    plain = TargetInfo.of("x86_64-unknown-linux-gnu", "x86-64")
    assert (plain.vector_bits, plain.vector_registers, plain.has_fma) == (128, 16, False)
    avx2 = TargetInfo.of("x86_64-unknown-linux-gnu", "x86-64-v3", ("avx", "avx2", "fma"))
    assert (avx2.vector_bits, avx2.vector_registers, avx2.has_fma) == (256, 16, True)
    avx512 = TargetInfo.of("x86_64-unknown-linux-gnu", "x86-64-v4", ("avx", "avx2", "fma", "avx512f", "avx512vl"))
    assert (avx512.vector_bits, avx512.vector_registers) == (512, 32)
    arm = TargetInfo.of("aarch64-unknown-linux-gnu")
    assert (arm.vector_bits, arm.vector_registers, arm.has_fma) == (128, 32, True)


def test_code_for_another_machine_is_emitted():
    module = ModuleBuilder("arm", TargetInfo.of("aarch64-unknown-linux-gnu"))
    fb = module.function("f", F32, (F32,))
    fb.ret(fb.mul_add(fb.parameters[0], 2.0, 1.0))
    parsed = llvm.parse_assembly(module.text())
    assert "fmadd" in module.target.create_machine().emit_assembly(parsed)
