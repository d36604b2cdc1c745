"""Loops, conditionals, switches; functions, globals and memory of a module."""

import re
import threading

import numpy as np
import pytest

from xlalite.backends.codegen.llvm import (
    F32,
    F64,
    I1,
    I8,
    I32,
    I64,
    PTR,
    VOID,
    LLVMBuildError,
    ModuleBuilder,
    array,
    constant,
    poison,
    struct,
    vector,
    zero,
)


@pytest.mark.parametrize(("start", "stop", "step"), [(0, 10, 1), (0, 10, 3), (5, 5, 1), (7, 2, 1), (-4, 3, 2)])
def test_loop_counts_like_range(compile_text, module, start, stop, step):
    fb = module.function("f", I64, (I64, I64, I64))
    with fb.carried_loop(*fb.parameters, [constant(I64, 0)]) as loop:
        loop.yield_(fb.add(fb.mul(loop.values[0], 3), loop.index))
    fb.ret(loop.results[0])
    constants = module.function("g", I64)
    with constants.carried_loop(start, stop, step, [constant(I64, 0)]) as loop:
        loop.yield_(constants.add(constants.mul(loop.values[0], 3), loop.index))
    constants.ret(loop.results[0])
    expected = 0
    for i in range(start, stop, step):
        expected = expected * 3 + i
    code = compile_text(module)
    assert code("f", start, stop, step) == expected
    assert code("g") == expected


def test_nested_loops_and_early_return(compile_text, module):
    fb = module.function("find", I64, (PTR, I64, I64, I32))
    table, rows, columns, wanted = fb.parameters
    with fb.loop(0, rows) as i, fb.loop(0, columns) as j:
        position = fb.add(fb.mul(i, columns), j)
        found = fb.icmp("eq", fb.load(I32, fb.gep(I32, table, position)), wanted)
        with fb.if_(found, likely=False):
            fb.ret(position)
    fb.ret(-1)
    code = compile_text(module)
    table = np.arange(12, dtype=np.int32)
    assert code("find", table, 3, 4, 7) == 7
    assert code("find", table, 3, 4, 12) == -1
    assert code("find", table, 0, 4, 0) == -1


def test_while_loop_with_carried_values(compile_text, module):
    fb = module.function("collatz", I64, (I64,))
    with fb.while_loop([fb.parameters[0], constant(I64, 0)]) as loop:
        n, steps = loop.values
        loop.continue_while(fb.icmp("sgt", n, 1))
        branch = fb.if_else(fb.trunc(n, I1))
        with branch.then():
            branch.yield_(fb.add(fb.mul(n, 3), 1))
        with branch.otherwise():
            branch.yield_(fb.lshr(n, 1))
        loop.yield_(branch.results[0], fb.add(steps, 1))
    fb.ret(loop.results[1])
    code = compile_text(module)
    assert code("collatz", 27) == 111
    assert code("collatz", 1) == 0


def test_while_loop_left_in_two_places(compile_text, module):
    """The first number from `start` on that is divisible by 7, or where a bound was reached."""
    fb = module.function("search", I64, (I64, I64))
    start, bound = fb.parameters
    with fb.while_loop([start]) as loop:
        (n,) = loop.values
        loop.continue_while(fb.icmp("slt", n, bound))
        loop.continue_while(fb.icmp("ne", fb.srem(n, 7), 0))
        loop.yield_(fb.add(n, 1))
    fb.ret(loop.results[0])
    code = compile_text(module)
    assert [code("search", 8, 100), code("search", 8, 11), code("search", 5, 1)] == [14, 11, 5]


def test_guards_share_a_place_to_go(compile_text, module):
    fb = module.function("between", I64, (I64,))
    outside = fb.new_block("outside")
    fb.guard(fb.icmp("sgt", fb.parameters[0], 2), outside)
    fb.guard(fb.icmp("slt", fb.parameters[0], 5), outside)
    fb.ret(fb.parameters[0])
    fb.position_at(outside)
    fb.ret(-1)
    code = compile_text(module)
    assert [code("between", n) for n in range(2, 6)] == [-1, 3, 4, -1]


def test_stack_array_of_a_size_known_at_run_time(compile_text, module):
    """The sum of squares, by way of a table on the stack."""
    fb = module.function("squares", I64, (I64,))
    table = fb.stack_array(I64, fb.parameters[0])
    with fb.loop(0, fb.parameters[0]) as i:
        fb.store(fb.mul(i, i), fb.gep(I64, table, i))
    with fb.carried_loop(0, fb.parameters[0], 1, [constant(I64, 0)]) as loop:
        loop.yield_(fb.add(loop.values[0], fb.load(I64, fb.gep(I64, table, loop.index))))
    fb.ret(loop.results[0])
    code = compile_text(module)
    assert [code("squares", n) for n in (0, 1, 100)] == [0, 0, sum(i * i for i in range(100))]


def test_if_else_where_parts_return(compile_text, module):
    fb = module.function("f", I32, (I1, I1))
    branch = fb.if_else(fb.parameters[0], likely=True)
    with branch.then():
        fb.ret(1)
    with branch.otherwise():
        inner = fb.if_else(fb.parameters[1])
        with inner.then():
            fb.ret(2)
        with inner.otherwise():
            fb.ret(3)
        assert inner.results == ()
    code = compile_text(module)
    assert [code("f", a, b) for a, b in ((True, False), (False, True), (False, False))] == [1, 2, 3]


def test_switch_and_phi(compile_text, module):
    fb = module.function("pick", I32, (I64,))
    arms = [fb.new_block("arm") for _ in range(3)]
    join = fb.new_block("join")
    fb.switch(fb.parameters[0], arms[0], {5: arms[1], -3: arms[2]})
    for arm in arms:
        fb.position_at(arm)
        fb.br(join)
    fb.position_at(join)
    merged = fb.phi(I32)
    for number, arm in enumerate(arms):
        merged.add_incoming(constant(I32, number * 10), arm)
    fb.ret(merged)
    code = compile_text(module)
    assert [code("pick", n) for n in (0, 5, -3)] == [0, 10, 20]


def test_masked_and_scattered_access(compile_text, module):
    wide = vector(F32, 8)
    fb = module.function("f", VOID, (PTR, PTR, I32))
    source, target, count = fb.parameters
    mask = fb.icmp("slt", fb.lane_numbers(I32, 8), fb.splat(count, 8))
    row = fb.masked_load(wide, source, mask, constant(wide, -1.0), align=4)
    fb.store(row, target, align=4)
    fb.masked_store(row, fb.gep(F32, target, 8), mask, align=4)
    places = fb.gep(F32, source, fb.lane_numbers(I64, 8, 2))
    fb.store(fb.gather(wide, places), fb.gep(F32, target, 16), align=4)
    partly = fb.gather(wide, places, mask, zero(wide), align=4)
    fb.scatter(partly, fb.gep(F32, fb.gep(F32, target, 24), fb.lane_numbers(I64, 8, 2)), align=4)
    fb.scatter(constant(wide, 9.0), fb.gep(F32, fb.gep(F32, target, 40), fb.lane_numbers(I64, 8)), mask)
    fb.ret()
    source = np.arange(16, dtype=np.float32)
    out = np.full((6, 8), 77, np.float32)
    compile_text(module)("f", source, out, 3)
    np.testing.assert_array_equal(out[0], [0, 1, 2, -1, -1, -1, -1, -1])
    np.testing.assert_array_equal(out[1], [0, 1, 2, 77, 77, 77, 77, 77])
    np.testing.assert_array_equal(out[2], source[::2])
    np.testing.assert_array_equal(out[3:5].ravel()[::2], [0, 2, 4, 0, 0, 0, 0, 0])
    np.testing.assert_array_equal(out[5], [9, 9, 9, 77, 77, 77, 77, 77])


def test_memory_blocks_structs_and_stack(compile_text, module):
    pair = struct(I32, F64)
    fb = module.function("f", F64, (PTR, PTR))
    source, target = fb.parameters
    fb.memcpy(target, source, 16, align=8)
    fb.memmove(fb.gep(I8, target, 4), target, constant(I64, 8))
    fb.memset(fb.gep(I8, target, 12), 255, 4)
    fb.prefetch(source, write=True, locality=1)
    fb.fence()
    with fb.loop(0, 2) as i:
        slot = fb.alloca(pair, 2, align=16)
        fb.store(fb.insert_value(zero(pair), constant(F64, 2.5), 1), fb.gep(pair, slot, i))
    total = fb.fadd(fb.load(F64, fb.gep(pair, slot, 1, 1)), fb.extract_value(fb.load(pair, slot, volatile=True), 1))
    fb.ret(total)
    assert fb.text().index("alloca") < fb.text().index("loop:")
    source = np.arange(16, dtype=np.uint8)
    out = np.zeros(16, np.uint8)
    assert compile_text(module)("f", source, out) == 5.0
    np.testing.assert_array_equal(out, [0, 1, 2, 3, 0, 1, 2, 3, 4, 5, 6, 7, 255, 255, 255, 255])


def test_atomics_count_exactly_across_threads(compile_text, module):
    fb = module.function("bump", VOID, (PTR, I64))
    counters, times = fb.parameters
    second = fb.gep(I64, counters, 1)
    with fb.loop(0, times):
        fb.atomic_rmw("add", counters, constant(I64, 1), "monotonic")
        with fb.while_loop([fb.atomic_load(I64, second, "acquire"), constant(I1, 1)]) as loop:
            expected, again = loop.values
            loop.continue_while(again)
            old, done = fb.compare_exchange(second, expected, fb.add(expected, 2))
            loop.yield_(old, fb.not_(done))
    fb.atomic_store(constant(I64, 1), fb.gep(I64, counters, 2), "release")
    fb.ret()
    code = compile_text(module)
    out = np.zeros(3, np.int64)
    threads = [threading.Thread(target=code, args=("bump", out, 10000)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert out.tolist() == [20000, 40000, 1]


def test_functions_call_each_other(compile_text, module):
    def build():
        fb = module.function(
            module.unique_name("square"), F64, (F64,), linkage="internal", attributes=("alwaysinline",)
        )
        fb.ret(fb.fmul(*fb.parameters * 2))
        return fb.function

    square = module.define_once(("square", 64), build)
    assert module.define_once(("square", 64), build) is square
    fb = module.function("f", F64, (F64, PTR))
    direct = fb.call(square, fb.call(square, 2.0))
    through = fb.call_pointer(square, F64, [fb.parameters[0]])
    hypot = module.declare("hypot", F64, (F64, F64))
    assert module.declare("hypot", F64, (F64, F64)) is hypot
    length = fb.call(hypot, 3.0, 4.0, attributes="")
    printf = module.declare("snprintf", I32, (PTR, I64, PTR), variadic=True)
    written = fb.call(printf, fb.parameters[1], 16, module.constant_bytes(b'%d "x"\\\0'), constant(I32, 42))
    done = module.function("touch", VOID, (PTR,))
    done.store(constant(I8, 33), done.parameters[0])
    done.ret()
    fb.call(done.function, fb.parameters[1])
    fb.ret(fb.fadd(fb.fadd(direct, through), fb.fadd(length, fb.sitofp(written, F64))))
    out = np.zeros(16, np.uint8)
    assert compile_text(module)("f", 10.0, out) == 16 + 100 + 5 + 7
    assert bytes(out[:8]) == b'!2 "x"\\\0'


def test_globals_keep_state_and_constants_are_shared(compile_text, module):
    counter = module.global_variable("counter", I64, constant(I64, 40), align=64)
    table = module.global_variable("table", array(F64, 4), constant=True)
    one = module.constant_bytes(b"abc", 16)
    assert module.constant_bytes(b"abc", 16) is one
    assert module.constant_bytes(b"", 16) is not one
    fb = module.function("next", I64)
    value = fb.add(fb.load(I64, counter), 1)
    fb.store(value, counter)
    address = fb.ptrtoint(module.constant_bytes(b"abc", 64), I64)
    fb.ret(fb.add(value, fb.add(fb.and_(address, 63), fb.fptosi(fb.load(F64, fb.gep(F64, table, 3)), I64))))
    code = compile_text(module)
    assert [code("next"), code("next")] == [41, 42]


def test_attributes_and_metadata_are_printed_once(module):
    for name in ("f", "g h"):
        fb = module.function(
            name,
            F32,
            (PTR, I64),
            parameter_attributes=("noalias readonly", ""),
            attributes=("nounwind", '"key"="value"'),
            linkage="internal",
        )
        scope = module.metadata("!{}")
        value = fb.load(F32, fb.parameters[0], metadata=f"!invariant.load {scope}")
        with fb.if_(fb.expect(fb.fcmp("oeq", value, 0.0), False), likely=False):
            fb.assume(fb.icmp("eq", fb.parameters[1], 0))
        fb.comment("the end")
        fb.ret(value)
    text = module.text()
    assert text.count('"key"="value"') == 1
    assert text.count("branch_weights") == 1
    (group,) = re.findall(r'attributes (#\d+) = { nounwind "key"="value" }', text)
    assert f'define internal float @"g h"(ptr noalias readonly %0, i64 %1) {group}' in text
    assert module.lookup("f") is not None
    assert module.lookup("h") is None


def wrong_operand_cases():
    def case(emit, message):
        return pytest.param(emit, message, id=message[:30])

    x, n, p, w = (lambda fb, i=i: fb.parameters[i] for i in range(4))
    return [
        case(lambda fb: fb.fadd(x(fb), n(fb)), "fadd: operand types do not fit: float %0, i64 %1"),
        case(lambda fb: fb.add(x(fb), 1), "add: operand types do not fit"),
        case(lambda fb: fb.add(n(fb), 1.5), "1.5 is not an integer"),
        case(lambda fb: fb.fneg(n(fb)), "fneg: operand"),
        case(lambda fb: fb.icmp("lt", n(fb), 1), "icmp: no predicate 'lt'"),
        case(lambda fb: fb.icmp("slt", x(fb), 1), "icmp: operand"),
        case(lambda fb: fb.fcmp("slt", x(fb), 1), "fcmp: no predicate 'slt'"),
        case(lambda fb: fb.fcmp("olt", n(fb), 1), "fcmp: operand"),
        case(lambda fb: fb.select(n(fb), x(fb), 1.0), "select: operand"),
        case(lambda fb: fb.select(constant(I1, 1), 2, 1.0), "select: operand"),
        case(lambda fb: fb.trunc(n(fb), I64) and fb.trunc(fb.trunc(n(fb), I32), I64), "trunc: cannot convert i32"),
        case(lambda fb: fb.sitofp(x(fb), F32), "sitofp: cannot convert"),
        case(lambda fb: fb.bitcast(x(fb), I64), "bitcast: cannot convert float %0 to i64"),
        case(lambda fb: fb.bitcast(p(fb), I64), "bitcast: cannot convert ptr"),
        case(lambda fb: fb.load(F32, n(fb)), "load: operand"),
        case(lambda fb: fb.store(x(fb), n(fb)), "store: operand"),
        case(lambda fb: fb.gep(F32, n(fb), 0), "gep: operand"),
        case(lambda fb: fb.gep(F32, p(fb), x(fb)), "gep: operand"),
        case(lambda fb: fb.masked_load(F32, p(fb), w(fb)), "masked_load of float"),
        case(lambda fb: fb.masked_store(w(fb), p(fb), w(fb)), "masked_store"),
        case(lambda fb: fb.gather(vector(F32, 4), p(fb)), "gather of <4 x float>"),
        case(lambda fb: fb.scatter(w(fb), p(fb)), "scatter"),
        case(lambda fb: fb.memcpy(p(fb), n(fb), 8), "memcpy"),
        case(lambda fb: fb.memset(p(fb), x(fb), 8), "memset"),
        case(lambda fb: fb.memset(p(fb), 0, x(fb)), "size in bytes"),
        case(lambda fb: fb.fence("strict"), "no atomic ordering 'strict'"),
        case(lambda fb: fb.atomic_rmw("mul", p(fb), n(fb)), "atomic_rmw: no operation 'mul'"),
        case(lambda fb: fb.compare_exchange(p(fb), n(fb), x(fb)), "compare_exchange"),
        case(lambda fb: fb.call_pointer(n(fb), F32), "call_pointer"),
        case(lambda fb: fb.call(fb.function, x(fb)), "call f: 1 arguments for 4 parameters"),
        case(lambda fb: fb.call(fb.function, *[x(fb)] * 4), "call f: argument 1 is float %0, wanted i64"),
        case(lambda fb: fb.splat(w(fb), 4), "splat: operand"),
        case(lambda fb: fb.extract(x(fb), 0), "extract: operand"),
        case(lambda fb: fb.insert(w(fb), n(fb), 0), "insert: operand"),
        case(lambda fb: fb.shuffle(w(fb), None, [8]), "mask [8] is out of range for two <4 x float>"),
        case(lambda fb: fb.shuffle(w(fb), x(fb), [0]), "shuffle: operand"),
        case(lambda fb: fb.any_lane(w(fb)), "mask: operand"),
        case(lambda fb: fb.extract_value(poison(struct(I32)), 1), "{ i32 } has no member 1"),
        case(lambda fb: fb.insert_value(poison(struct(I32)), n(fb), 0), "insert_value: operand"),
        case(lambda fb: fb.fma(x(fb), 1.0, n(fb)), "fma: operand"),
        case(lambda fb: fb.sqrt(n(fb)), "sqrt: operand"),
        case(lambda fb: fb.minimum(x(fb), n(fb)), "minimum: operand"),
        case(lambda fb: fb.smin(x(fb), 1), "smin: operand"),
        case(lambda fb: fb.ctpop(x(fb)), "ctpop: operand"),
        case(lambda fb: fb.ctlz(x(fb)), "ctlz: operand"),
        case(lambda fb: fb.fshl(n(fb), x(fb), 1), "fshl: operand"),
        case(lambda fb: fb.fptosi_sat(n(fb), I32), "fptosi.sat to i32"),
        case(lambda fb: fb.arithmetic_fence(n(fb)), "arithmetic_fence"),
        case(lambda fb: fb.is_fpclass(n(fb), 3), "is_fpclass"),
        case(lambda fb: fb.with_overflow("sadd", x(fb), x(fb)), "sadd: operand"),
        case(lambda fb: fb.cond_br(n(fb), fb.block, fb.block), "cond_br: operand"),
        case(lambda fb: fb.switch(x(fb), fb.block, {}), "switch: operand"),
        case(lambda fb: fb.ret(), "ret: function f returns float"),
        case(lambda fb: fb.ret(n(fb)), "ret: function f returns float, not i64 %1"),
        case(lambda fb: fb.loop(n(fb), constant(I32, 3)).__enter__(), "loop bounds"),
        case(lambda fb: fb.position_at(fb.new_block()), "block entry has no terminator"),
        case(lambda fb: fb.position_at(fb.block), "block entry was written before"),
        case(lambda fb: [fb.ret(x(fb)), fb.fneg(x(fb))], "block entry has its terminator already"),
        case(lambda fb: [fb.fneg(x(fb)), fb.phi(F32)], "phi: block entry has other instructions"),
        case(lambda fb: fb.text(), "function f: block entry has no terminator"),
        case(lambda fb: [fb.new_block("lost"), fb.ret(x(fb)), fb.text()], "blocks never written: lost"),
        case(lambda fb: fb.module.function("f", VOID), "the module has a symbol of that name"),
        case(lambda fb: fb.module.function("g", VOID, (), parameter_attributes=("a",)), "1 parameter attributes"),
        case(lambda fb: fb.module.declare("f", VOID), "already known with another signature"),
        case(lambda fb: fb.module.global_variable("g", I32, constant(I64, 1)), "initializer is i64, wanted i32"),
    ]


@pytest.mark.parametrize(("emit", "message"), wrong_operand_cases())
def test_wrong_operands_are_refused_where_they_are_made(emit, message):
    fb = ModuleBuilder("wrong").function("f", F32, (F32, I64, PTR, vector(F32, 4)))
    with pytest.raises(LLVMBuildError) as failure:
        emit(fb)
    assert message in str(failure.value)


def write_loop_without_yield(fb):
    with fb.carried_loop(0, 4, 1, [constant(I32, 0)]):
        pass


def write_loop_with_early_results(fb):
    with fb.carried_loop(0, 4, 1, [constant(I32, 0)]) as loop:
        assert loop.results


def write_loop_with_wrong_yield(fb):
    with fb.carried_loop(0, 4, 1, [constant(I32, 0)]) as loop:
        loop.yield_(constant(I64, 1))


def write_while_without_condition(fb):
    with fb.while_loop([]):
        pass


def write_while_with_index(fb):
    with fb.while_loop([]) as loop:
        assert loop.index


def write_branch_with_early_results(fb):
    assert fb.if_else(constant(I1, 1)).results


def write_branch_with_two_types(fb):
    branch = fb.if_else(constant(I1, 1))
    with branch.then():
        branch.yield_(constant(I32, 1))
    with branch.otherwise():
        branch.yield_(constant(I64, 1))


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (write_loop_without_yield, "ended without yield_"),
        (write_loop_with_early_results, "results exist only after"),
        (write_loop_with_wrong_yield, "loop: yielded"),
        (write_while_without_condition, "ended without continue_while"),
        (write_while_with_index, "this loop has no index"),
        (write_branch_with_early_results, "results exist only after"),
        (write_branch_with_two_types, "parts yield different types"),
    ],
)
def test_structured_forms_insist_on_their_values(module, write, message):
    with pytest.raises(LLVMBuildError, match=message):
        write(module.function("f", VOID))
