"""Places of elements are computed before the loops that they do not change in, once."""

import ctypes

from xlalite.backends.codegen.arrays.index import Affine, IndexMath, Sum, index_key, sum_of
from xlalite.backends.codegen.llvm import F32, I64, PTR, ModuleBuilder
from xlalite.backends.cpu.native.jit import compile_ir
from xlalite.backends.cpu.native.linker import link
from xlalite.backends.cpu.native.object_code import IrSource


def test_a_place_is_computed_before_the_loops_that_it_does_not_change_in() -> None:
    fb = ModuleBuilder("m").function("f", I64, (PTR, I64))
    math = IndexMath(fb, 1)
    with fb.loop(0, fb.parameters[1]) as row, fb.loop(0, 3) as column:
        for shift in (0, 1):
            place = math.linear((Affine(sum_of(row, shift)), Affine(sum_of(column, shift))), (5, 1))
            assert isinstance(place, Affine)
            fb.store(column, math.address(I64, fb.parameters[0], place.base), 8)
    fb.ret(0)
    lines = [line.strip() for line in fb.text().splitlines()]
    outer, inner = lines.index("loop:"), lines.index("loop.1:")
    assert [line.partition(" = ")[2] for line in lines[outer + 2 : inner - 1]] == [
        "mul nsw i64 %3, 5",
        "getelementptr i64, ptr %0, i64 %before0",
    ]
    inside = lines[inner : lines.index("loop_exit.1:")]
    assert sum("getelementptr" in line for line in inside) == 2
    assert not any("mul" in line for line in inside)


def test_what_is_computed_in_one_branch_is_not_used_in_another() -> None:
    fb = ModuleBuilder("m").function("f", I64, (I64, I64))
    math, total = IndexMath(fb, 1), Sum(((fb.parameters[0], 3),), 1)
    choice = fb.if_else(fb.icmp("slt", *fb.parameters))
    with choice.then():
        choice.yield_(math.scalar(total))
    with choice.otherwise():
        with fb.carried_loop(0, 2, 1, [fb.parameters[1]]) as loop:
            loop.yield_(fb.add(loop.values[0], math.scalar(total)))
        choice.yield_(fb.add(*loop.results, math.scalar(total)))
    fb.ret(choice.results[0])
    module = link([compile_ir(IrSource(fb.module.text()))])
    call = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)(module.address("f"))
    assert [call(2, 5), call(5, 2)] == [7, 2 + 3 * 16]


def test_sums_are_collected_and_empty_ones_are_numbers() -> None:
    fb = ModuleBuilder("m").function("f", I64, (I64, I64))
    a, b = fb.parameters
    math = IndexMath(fb, 1)
    both = sum_of(sum_of(a, b), sum_of(a, 4))
    assert both == Sum(((a, 2), (b, 1)), 4)
    assert sum_of(sum_of(a, 2), -2) is a
    assert math.scale(Affine(both), 0) == Affine(0)
    assert index_key((Affine(sum_of(a, 1)),)) == index_key((Affine(sum_of(1, a)),)) != index_key((Affine(a),))
    fb.ret(math.scalar(both))
    module = link([compile_ir(IrSource(fb.module.text()))])
    call = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)(module.address("f"))
    assert call(10, 3) == 27


def test_pointers_that_loops_carry_are_not_analysed_unless_a_function_says_so() -> None:
    for is_strength_reduced, count in ((False, 2), (True, 0)):
        fb = ModuleBuilder("m").function("f", F32, (PTR,))
        fb.is_strength_reduced = is_strength_reduced
        with fb.carried_loop(0, 4, 1, [fb.parameters[0], fb.constant(F32, 0)]) as loop:
            pointer, total = loop.values
            loop.yield_(fb.gep(F32, pointer, 1), fb.fadd(total, fb.load(F32, pointer)))
        fb.ret(loop.results[1])
        assert fb.text().count("asm") == count


def test_numbers_that_a_loop_with_a_condition_carries_are_not_analysed() -> None:
    fb = ModuleBuilder("m").function("f", I64, (I64,))
    with fb.while_loop([fb.constant(I64, 0)]) as loop:
        loop.continue_while(fb.icmp("slt", loop.values[0], fb.parameters[0]))
        loop.yield_(fb.add(loop.values[0], 3))
    fb.ret(loop.results[0])
    assert fb.text().count("asm") == 1
