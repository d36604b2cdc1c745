from xlalite.hlo.text import parse
from xlalite.passes.analysis.cost_analysis import Cost, CostAnalysis, cost_analysis


def cost(body: str, computations: str = "") -> Cost:
    return cost_analysis(parse(f"HloModule m\n\n{computations}\n\nENTRY e {{\n{body}\n}}\n"))


def test_elementwise_operations_cost_one_an_element() -> None:
    found = cost("x = f32[4,8] parameter(0)\nROOT r = f32[4,8] add(x, x)")
    assert found == Cost(32, 0, 3 * 128)
    assert found.as_dict() == {"flops": 32.0, "transcendentals": 0.0, "bytes accessed": 384.0}


def test_transcendental_functions_are_counted_apart() -> None:
    assert cost("x = f32[4,8] parameter(0)\nROOT r = f32[4,8] tanh(x)") == Cost(0, 32, 256)


def test_dot_costs_a_multiplication_and_an_addition_for_each_product() -> None:
    found = cost(
        "x = f32[4,8] parameter(0)\ny = f32[8,2] parameter(1)\n"
        "ROOT r = f32[4,2] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}"
    )
    assert found.flops == 2 * 4 * 8 * 2


def test_data_movement_costs_bytes_only() -> None:
    assert cost("x = f32[4,8] parameter(0)\nROOT r = f32[8,4] transpose(x), dimensions={1,0}") == Cost(0, 0, 256)


LOOP = """condition {
  s = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] LIMIT
  ROOT r = pred[] compare(i, n), direction=LT
}

body {
  s = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[4] get-tuple-element(s), index=1
  one = s32[] constant(1)
  next = s32[] add(i, one)
  y = f32[4] tanh(x)
  ROOT r = (s32[], f32[4]) tuple(next, y)
}
"""
ENTRY = """
  zero = s32[] constant(0)
  x = f32[4] parameter(0)
  s = (s32[], f32[4]) tuple(zero, x)
  ROOT w = (s32[], f32[4]) while(s), condition=condition, body=body
"""


def test_loop_costs_its_iterations() -> None:
    assert cost(ENTRY, LOOP.replace("LIMIT", "constant(10)")).transcendentals == 40


def test_loop_of_unknown_length_counts_once() -> None:
    text = LOOP.replace("LIMIT", "negate(i)")
    assert cost(ENTRY, text).transcendentals == 4


def test_fusion_reads_and_writes_only_its_ends() -> None:
    module = parse(
        """HloModule m

f {
  a = f32[4] parameter(0)
  b = f32[4] tanh(a)
  ROOT c = f32[4] add(b, a)
}

ENTRY e {
  x = f32[4] parameter(0)
  ROOT r = f32[4] fusion(x), kind=kLoop, calls=f
}
"""
    )
    assert CostAnalysis().of_instruction(module.entry_computation.root) == Cost(4, 4, 32)
