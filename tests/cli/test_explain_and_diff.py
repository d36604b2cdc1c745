"""`xlalite explain` and `xlalite diff`."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

DIFFERENT = 1


def test_explain_lists_kernels_with_what_was_decided_about_each(softmax: Path, xlalite: Callable[..., object]) -> None:
    ran = xlalite("explain", softmax)
    assert ran.code == 0
    assert ran.out.startswith("kernels:\n  q_fusion: row: ")
    assert "\n    fusion: " in ran.out
    assert " e, d, mb, m -> q: fused: " in ran.out
    assert ran.out.endswith("\nall is native code\n")
    in_full = xlalite("explain", softmax, "--all").out
    assert in_full.startswith("fusion:\n  ")
    assert "\n  e -> q: fused: " in in_full
    assert "\nkernel planner:\n  q_fusion: row: " in in_full


def test_explain_shows_kernels_that_are_alike_once(
    hlo_file: Callable[..., Path], xlalite: Callable[..., object]
) -> None:
    dims = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
    body = f"""  a = f32[64,64] parameter(0)
  d0 = f32[64,64] dot(a, a), {dims}
  d1 = f32[64,64] dot(d0, a), {dims}
  d2 = f32[64,64] dot(d1, a), {dims}
  ROOT d3 = f32[64,64] dot(d2, a), {dims}"""
    out = xlalite("explain", hlo_file(body)).out
    assert "kernels:\n  d0: dot: " in out
    assert "\n  d1 and 2 alike (d2, ...): dot: " in out
    assert "\n    fusion: d0 -> d1: not fused: " in out
    assert "d1 -> d2" not in out


def test_explain_says_what_leaves_native_code(hlo_file: Callable[..., Path], xlalite: Callable[..., object]) -> None:
    path = hlo_file('  a = f32[8] parameter(0)\n  ROOT b = f32[8] custom-call(a), custom_call_target="mine"')
    out = xlalite("explain", path).out
    assert out.endswith("\nslow: b (custom-call) leaves native code: it is a custom call of mine\n")


def test_explain_follows_an_instruction_into_its_kernel(softmax: Path, xlalite: Callable[..., object]) -> None:
    out = xlalite("explain", softmax, "%e").out
    assert "given, in main: %e = f32[4,16]{1,0} exponential(%d)\n" in out
    assert "compiled, in fused_q: %e = " in out
    assert "fusion: e -> q: fused: " in out
    assert "kernel planner: q_fusion: row: " in out
    assert "sb -> q" not in out


def test_explain_an_instruction_that_is_gone(hlo_file: Callable[..., Path], xlalite: Callable[..., object]) -> None:
    path = hlo_file("  a = f32[8] parameter(0)\n  unused = f32[8] exponential(a)\n  ROOT b = f32[8] negate(a)")
    out = xlalite("explain", path, "unused").out
    assert "compiled: it is gone" in out
    assert "no decision concerns it" in out


def test_explain_as_json(softmax: Path, xlalite: Callable[..., object]) -> None:
    decisions = json.loads(xlalite("explain", softmax, "e", "--json").out)
    assert {"decided_by": "fusion", "subject": ["e", "q"], "verdict": "fused"}.items() <= decisions[0].items()


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, repository: Path) -> Path:
    """Trains for two steps, with the JIT as it is by default."""
    monkeypatch.setenv("PYTHONPATH", str(repository))
    path = tmp_path / "train.py"
    path.write_text(
        "import xlalite as tf\n"
        "x = tf.placeholder(tf.float32, [None, 4], name='x')\n"
        "w = tf.Variable(tf.ones([4, 2]), name='w')\n"
        "loss = tf.reduce_mean(tf.square(tf.matmul(x, w)), name='loss')\n"
        "step = tf.train.GradientDescentOptimizer(0.1).minimize(loss, name='train')\n"
        "with tf.Session() as sess:\n"
        "    sess.run(tf.global_variables_initializer())\n"
        "    for _ in range(2):\n"
        "        print('loss', sess.run([loss, step], {x: [[1, 2, 3, 4]]})[0])\n"
    )
    return path


def test_explain_a_program(program: Path, xlalite: Callable[..., object]) -> None:
    ran = xlalite("explain", "--", program)
    assert ran.code == 0
    assert "cluster_0_train ran 2 times\n  compilation: cluster_0_train: compiled: first signature" in ran.out
    assert "loss " in ran.err
    assert max(map(len, ran.out.splitlines())) <= 80


def test_explain_an_operation_of_a_program(program: Path, xlalite: Callable[..., object]) -> None:
    inside = xlalite("explain", "MatMul", "--", program).out.splitlines()
    assert inside[:2] == ["MatMul = MatMul(x:0, ReadVariableOp:0)", "runs in cluster_0_train"]
    assert "compilation: cluster_0_train: compiled: first signature" in inside
    outside = xlalite("explain", "w", "--", program).out
    assert "runs by itself" in outside
    assert "cannot be compiled: it names a variable" in outside
    decisions = json.loads(xlalite("explain", "w", "--json", "--", program).out)
    assert {each["decided_by"] for each in decisions} == {"clustering"}


def test_explain_wrong_use_of_programs(program: Path, softmax: Path, xlalite: Callable[..., object]) -> None:
    assert f"no session of {program} ran an operation 'matmul'" in xlalite("explain", "matmul", "--", program).err
    assert "holds a module, not a Python program" in xlalite("explain", "--", softmax).err
    program.write_text("raise SystemExit(3)")
    assert xlalite("explain", "--", program).code == 3


def test_explain_wrong_use(softmax: Path, xlalite: Callable[..., object]) -> None:
    ran = xlalite("explain", softmax, "q_fuson")
    assert ran.code == 2
    assert "there is no instruction 'q_fuson' in softmax, before or after optimisation; did you mean" in ran.err
    ran = xlalite("explain", softmax, "--platform=interpreter")
    assert ran.code == 2
    assert "decides nothing" in ran.err


@pytest.fixture
def diff(tmp_path: Path, softmax: Path, xlalite: Callable[..., object]) -> Callable[..., object]:
    """`diff((old, new), ...)`: compares the softmax with itself after these replacements."""

    def run(*replacements: tuple[str, str]) -> object:
        text = softmax.read_text()
        for old, new in replacements:
            assert old in text
            text = text.replace(old, new)
        (tmp_path / "other.hlo").write_text(text)
        return xlalite("diff", softmax, tmp_path / "other.hlo")

    return run


def test_names_order_and_metadata_make_no_difference(diff: Callable[..., object]) -> None:
    ran = diff(("m = f32[4] reduce(x", "peak = f32[4] reduce(x"), ("broadcast(m)", "broadcast(peak)"))
    assert ran.code == 0
    assert "have the same structure" in ran.out
    assert diff(("x = f32[4,16] parameter(0)", 'x = f32[4,16]{1,0} parameter(0), metadata={op_name="y"}')).code == 0


def test_changed_attributes_and_operations(diff: Callable[..., object]) -> None:
    ran = diff(("zero = f32[] constant(0)", "zero = f32[] constant(1)"), ("exponential", "tanh"))
    assert ran.code == DIFFERENT
    assert "computation main: 8 same, 2 changed, 0 only in A, 0 only in B\n" in ran.out
    assert "  ~ %zero -> %zero: attributes\n    - %zero = f32[] constant(0)\n    + %zero = " in ran.out
    assert "  ~ %e -> %e: operation exponential -> tanh\n" in ran.out


def test_added_and_removed_instructions(diff: Callable[..., object]) -> None:
    ran = diff(("  ROOT q = f32[4,16] divide(e, sb)", "  q = f32[4,16] divide(e, sb)\n  ROOT n = f32[4,16] negate(q)"))
    assert ran.code == DIFFERENT
    assert ran.out.endswith(
        "computation main: 10 same, 0 changed, 0 only in A, 1 only in B\n"
        "  root: %q -> %n\n"
        "  + %n = f32[4,16]{1,0} negate(%q)\n"
    )


def test_difference_inside_a_called_computation(diff: Callable[..., object]) -> None:
    ran = diff(("maximum", "minimum"))
    assert ran.code == DIFFERENT
    assert "computation max: 2 same, 1 changed" in ran.out
    assert "operation maximum -> minimum" in ran.out
    assert "computation main" not in ran.out


def test_swapped_operands_are_a_change(diff: Callable[..., object]) -> None:
    ran = diff(("subtract(x, mb)", "subtract(mb, x)"))
    assert ran.code == DIFFERENT
    assert "  ~ %d -> %d: operand 0, operand 1\n" in ran.out


def test_fused_module_shows_what_is_only_on_one_side(
    softmax: Path, tmp_path: Path, xlalite: Callable[..., object]
) -> None:
    xlalite("opt", softmax, "-o", tmp_path / "fused.hlo")
    ran = xlalite("diff", softmax, tmp_path / "fused.hlo")
    assert ran.code == DIFFERENT
    assert "  root: %q -> %q_fusion\n" in ran.out
    assert "+ computation fused_q: only in B\n" in ran.out
    assert "computation max" not in ran.out
