"""A fault of LLVM that code for AVX-512 must steer clear of, shown on LLVM alone."""

import llvmlite.binding as llvm
import pytest
from llvm_machine import machine_for

from xlalite.backends.codegen.llvm import (
    I8,
    I16,
    I32,
    I64,
    PTR,
    VOID,
    ModuleBuilder,
    TargetInfo,
    Type,
    lane_mask,
    vector,
)

AVX512 = TargetInfo.of(
    "x86_64-unknown-linux-gnu",
    "x86-64-v4",
    ("avx", "avx2", "avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl", "f16c", "fma"),
)
NARROWINGS = [(8, I64, I32), (8, I64, I16), (8, I64, I8), (16, I32, I16), (16, I32, I8), (32, I16, I8)]
STORED = {8: ("movb", "vpextrb"), 16: ("movw", "vpextrw"), 32: ("movl", "vmovss", "vmovd", "vextractps", "vpextrd")}


def test_llvm_stores_one_lane_too_wide() -> None:
    """LLVM 22.1: a truncated lane under a mask that is known is stored as wide as it was before.

    The day this fails, `Memory.masked_store` need not look at its mask any longer.
    """
    text = """
declare void @llvm.masked.store.v8i32.p0(<8 x i32>, ptr, <8 x i1>)
define void @f(<8 x i64> %wide, ptr %p) {
  %narrow = trunc <8 x i64> %wide to <8 x i32>
  %mask = icmp slt <8 x i64> <i64 0, i64 1, i64 2, i64 3, i64 4, i64 5, i64 6, i64 7>, splat (i64 1)
  call void @llvm.masked.store.v8i32.p0(<8 x i32> %narrow, ptr align 4 %p, <8 x i1> %mask)
  ret void
}
"""
    assert instruction_that_stores(text) in ("vmovlps", "vmovq", "movq")


@pytest.mark.parametrize("narrowing", NARROWINGS, ids=lambda n: f"{n[1].text}-{n[2].text}")
def test_one_lane_is_stored_as_wide_as_it_is(narrowing: tuple[int, Type, Type]) -> None:
    lanes, wide, narrow = narrowing
    module = ModuleBuilder("one_lane", AVX512)
    fb = module.function("f", VOID, (vector(wide, lanes), PTR))
    value, pointer = fb.parameters
    fb.masked_store(fb.trunc(value, vector(narrow, lanes)), pointer, lane_mask(lanes, 1))
    fb.ret()
    assert instruction_that_stores(module.text()) in STORED[narrow.bits]


def instruction_that_stores(text: str) -> str:
    """The mnemonic of the only instruction that writes where `%rdi` or `%rsi` points."""
    machine = machine_for(AVX512)
    with llvm.create_context() as context, llvm.parse_assembly(text, context) as module:
        manager = llvm.create_new_module_pass_manager()
        manager.add_instruction_combine_pass()
        manager.run(module, llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=2)))
        lines = [line.split("#")[0].strip() for line in machine.emit_assembly(module).splitlines()]
    (store,) = [line for line in lines if line.endswith(("(%rdi)", "(%rsi)"))]
    return store.split()[0]
