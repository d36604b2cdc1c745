from xlalite.passes.normalization.call_inliner import CallInliner
from xlalite.passes.normalization.map_inliner import MapInliner
from xlalite.passes.preparation.barrier_remover import BarrierRemover
from xlalite.passes.preparation.flatten_call_graph import FlattenCallGraph
from xlalite.passes.simplify.conditional_simplifier import ConditionalSimplifier
from xlalite.passes.simplify.tuple_simplifier import TupleSimplifier


def test_element_of_a_tuple_is_the_operand(transform) -> None:
    result = transform(
        TupleSimplifier(),
        """HloModule m

ENTRY e {
  x = f32[4] parameter(0)
  y = s32[] parameter(1)
  inner = (s32[], f32[4]) tuple(y, x)
  outer = ((s32[], f32[4]), f32[4]) tuple(inner, x)
  i = (s32[], f32[4]) get-tuple-element(outer), index=0
  ROOT r = f32[4] get-tuple-element(i), index=1
}
""",
    )
    assert result.module.entry_computation.root.name == "x"


def test_tuple_of_all_elements_in_order_is_the_tuple(transform) -> None:
    text = """HloModule m

ENTRY e {
  t = (f32[4], f32[4]) parameter(0)
  a = f32[4] get-tuple-element(t), index=FIRST
  b = f32[4] get-tuple-element(t), index=SECOND
  ROOT r = (f32[4], f32[4]) tuple(a, b)
}
"""
    simplifier = TupleSimplifier()
    assert transform(simplifier, text.replace("FIRST", "0").replace("SECOND", "1")).opcodes == []
    assert not transform(simplifier, text.replace("FIRST", "1").replace("SECOND", "0")).changed


CALLS = """HloModule m

inner {
  a = f32[4] parameter(0)
  ROOT r = f32[4] add(a, a)
}

outer {
  a = f32[4] parameter(0)
  b = f32[4] call(a), to_apply=inner
  ROOT r = f32[4] multiply(b, a)
}

ENTRY e {
  x = f32[4] parameter(0)
  c = f32[4] call(x), to_apply=outer
  ROOT r = f32[4] call(c), to_apply=outer
}
"""


def test_calls_are_inlined_innermost_first(transform) -> None:
    result = transform(CallInliner(), CALLS)
    assert result.opcodes == ["add", "multiply", "add", "multiply"]
    assert len(result.module.computations()) == 1


def test_calls_that_would_make_the_module_too_large_stay_with_a_record(transform) -> None:
    result = transform(CallInliner(max_instructions=5), CALLS)
    assert result.opcodes == ["call", "call"]
    assert {d.reason for d in result.module.decisions} == {"module would grow too large"}


def test_call_with_control_dependencies_stays(transform) -> None:
    text = CALLS.replace("ROOT r = f32[4] call(c), to_apply=outer", "d = f32[4] tanh(x)\n  ROOT r = f32[4] call(c), "
                         "to_apply=outer, control-predecessors={d}")  # fmt: skip
    assert transform(CallInliner(), text).opcodes.count("call") == 1


def test_inlined_fusion_gets_its_own_body(transform) -> None:
    text = """HloModule m

body {
  a = f32[4] parameter(0)
  ROOT r = f32[4] add(a, a)
}

outer {
  a = f32[4] parameter(0)
  ROOT r = f32[4] fusion(a), kind=kLoop, calls=body
}

ENTRY e {
  x = f32[4] parameter(0)
  c = f32[4] call(x), to_apply=outer
  ROOT r = f32[4] call(c), to_apply=outer
}
"""
    result = transform(CallInliner(), text)
    assert result.opcodes == ["fusion", "fusion"]
    assert len(result.module.computations()) == 3


MAP = """HloModule m

f {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  two = f32[] constant(2)
  m = f32[] multiply(a, two)
  ROOT r = f32[] BODY
}

ENTRY e {
  x = f32[4,2] parameter(0)
  y = f32[4,2] parameter(1)
  ROOT r = f32[4,2] map(x, y), dimensions={0,1}, to_apply=f
}
"""


def test_map_becomes_operations_on_arrays(transform) -> None:
    result = transform(MapInliner(), MAP.replace("BODY", "subtract(m, b)"))
    assert result.opcodes == ["constant", "broadcast", "multiply", "subtract"]


def test_operations_of_an_inlined_map_keep_what_is_asked_of_them(transform) -> None:
    result = transform(MapInliner(), MAP.replace("BODY", "power(m, b), result_accuracy={mode=highest}"))
    root = result.module.entry_computation.root
    assert root.extra_attributes == (("result_accuracy", "{mode=highest}"),)


def test_map_of_a_function_that_is_not_elementwise_stays(transform) -> None:
    assert not transform(MapInliner(), MAP.replace("BODY", "reshape(m)")).changed


CONDITIONAL = """HloModule m

double {
  a = f32[4] parameter(0)
  ROOT r = f32[4] add(a, a)
}

square {
  a = f32[4] parameter(0)
  ROOT r = f32[4] multiply(a, a)
}

ENTRY e {
  x = f32[4] parameter(0)
  y = f32[4] parameter(1)
  p = s32[] SELECTOR
  ROOT r = f32[4] conditional(p, x, y), branch_computations={double, square}
}
"""


def test_conditional_on_a_constant_is_the_branch(transform) -> None:
    simplifier = ConditionalSimplifier()
    assert transform(simplifier, CONDITIONAL.replace("SELECTOR", "constant(0)")).root == "add(x, x)"
    assert transform(simplifier, CONDITIONAL.replace("SELECTOR", "constant(1)")).root == "multiply(y, y)"
    assert transform(simplifier, CONDITIONAL.replace("SELECTOR", "constant(-1)")).root == "multiply(y, y)"


def test_conditional_on_an_unknown_index_stays(transform) -> None:
    assert not transform(ConditionalSimplifier(), CONDITIONAL.replace("SELECTOR", "parameter(2)")).changed


def test_conditional_whose_branches_do_the_same_is_a_branch(transform) -> None:
    text = CONDITIONAL.replace("SELECTOR", "parameter(2)").replace("multiply", "add").replace("(p, x, y)", "(p, x, x)")
    assert transform(ConditionalSimplifier(), text).root == "add(x, x)"


def test_shared_control_flow_computations_are_cloned(transform) -> None:
    result = transform(FlattenCallGraph(), CALLS)
    called = [callee for instruction in result.module.instructions() for callee in instruction.called_computations]
    assert len(called) == len(set(called)) == 4


def test_computations_with_one_caller_are_not_cloned(transform) -> None:
    text = CALLS.replace("ROOT r = f32[4] call(c), to_apply=outer", "ROOT r = f32[4] negate(c)")
    assert not transform(FlattenCallGraph(), text).changed


BARRIER = """HloModule m

ENTRY e {
  x = f32[4] parameter(0)
  t = f32[4] tanh(x)
  b = f32[4] opt-barrier(t)
  ROOT r = f32[4] negate(b)
}
"""


def test_barriers_are_removed(transform) -> None:
    assert transform(BarrierRemover(), BARRIER).opcodes == ["tanh", "negate"]


def test_barriers_with_control_dependencies_stay(transform) -> None:
    text = BARRIER.replace("opt-barrier(t)", "opt-barrier(x), control-predecessors={t}")
    assert not transform(BarrierRemover(), text).changed
