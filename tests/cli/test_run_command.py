"""`xlalite run`."""

from collections.abc import Callable
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from xlalite.cli.comparison import Bounds, compare
from xlalite.cli.index_ranges import largest_indices
from xlalite.cli.random_inputs import random_arguments, random_value
from xlalite.hlo.text import parse
from xlalite.hlo.tools.referee import Referee
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.shape import Shape

DEFAULT = Bounds()
EVERY_KIND = """\
  a = bf16[3] parameter(0)
  p = (f32[2], s32[2,2]) parameter(1)
  c = c64[2] parameter(2)
  b = pred[] parameter(3)
  u = u4[3] parameter(4)
  e = f8e4m3fn[0,2] parameter(5)
  g = f32[2] get-tuple-element(p), index=0
  i = s32[2,2] get-tuple-element(p), index=1
  aa = bf16[3] add(a, a)
  ii = s32[2,2] multiply(i, i)
  n = pred[] not(b)
  inner = (c64[2], pred[]) tuple(c, n)
  ROOT r = (bf16[3], f32[2], s32[2,2], (c64[2], pred[]), u4[3], f8e4m3fn[0,2]) tuple(aa, g, ii, inner, u, e)"""


def test_agreement_is_code_0(softmax: Path, xlalite: Callable[..., object]) -> None:
    ran = xlalite("run", softmax, "--iterations=3", "--num_threads=1")
    assert ran.code == 0
    assert "result f32[4,16]: " in ran.out
    assert " ms of 3; reference " in ran.out


def test_profile_says_which_kernels_took_the_time(softmax: Path, xlalite: Callable[..., object]) -> None:
    ran = xlalite("run", softmax, "--iterations=3", "--num_threads=1", "--profile")
    assert ran.code == 0
    table = ran.out[ran.out.index("kernel ") :].splitlines()
    assert table[0].split() == ["kernel", "kind", "calls", "threads", "ms", "share", "GB/s", "GFLOP/s", "roof"]
    assert table[-2].startswith("(between kernels)")
    assert all(line.split()[-7:-5] == ["3", "1"] for line in (*table[1:-2], table[-1]))
    assert xlalite("run", softmax, "--platform=interpreter", "--profile").code == 2


def test_roofline_is_a_picture_of_the_kernels(softmax: Path, tmp_path: Path, xlalite: Callable[..., object]) -> None:
    picture = tmp_path / "roof.svg"
    ran = xlalite("run", softmax, "--num_threads=1", f"--roofline={picture}")
    assert ran.code == 0
    assert " roof\n" in ran.out
    shown = picture.read_text()
    assert shown.startswith("<svg ")
    assert "of the possible speed</title></circle>" in shown


@pytest.mark.parametrize("large", [[], ["--use_large_float_range"]])
def test_tuples_and_every_kind_of_type(
    large: list[str], hlo_file: Callable[..., Path], xlalite: Callable[..., object]
) -> None:
    ran = xlalite("run", hlo_file(EVERY_KIND), "--print_literals", *large)
    assert ran.code == 0
    assert "  argument 1: (f32[2], s32[2,2]) ( {" in ran.out
    assert "  result{3}{1} pred[]: equal\n" in ran.out


def test_disagreement_is_code_1_with_the_elements(softmax: Path, xlalite: Callable[..., object]) -> None:
    ran = xlalite("run", softmax, "--rel_error_bound=0", "--abs_error_bound=0", "--use_large_float_range")
    if ran.code == 0:  # this processor's arithmetic happens to agree to the last bit
        assert ": equal" in ran.out
        return
    assert ran.code == 1
    assert "of 64 elements differ" in ran.out
    assert "MISMATCH with interpreter (inputs of --random_seed=42)" in ran.out


def test_without_reference(softmax: Path, xlalite: Callable[..., object]) -> None:
    ran = xlalite("run", softmax, "--reference_platform=", "--platform=interpreter")
    assert ran.code == 0
    assert "result" not in ran.out


def test_several_files(softmax: Path, hlo_file: Callable[..., Path], xlalite: Callable[..., object]) -> None:
    ran = xlalite("run", softmax, hlo_file(EVERY_KIND))
    assert ran.out.endswith("2 of 2 modules agree\n")


def test_a_file_that_fails_does_not_stop_the_others(
    tmp_path: Path, softmax: Path, hlo_file: Callable[..., Path], xlalite: Callable[..., object]
) -> None:
    (tmp_path / "broken.hlo").write_text("HloModule m\n\nENTRY e {")
    unknown = hlo_file('  ROOT a = f32[2] custom-call(), custom_call_target="mystery"')
    ran = xlalite("run", tmp_path / "broken.hlo", tmp_path / "none.hlo", unknown, softmax)
    assert ran.code == 2
    *_, blank, broken, none, mystery, good, total = ran.out.splitlines()
    assert not blank
    assert "broken.hlo  " in broken
    assert "  error: " in broken
    assert none.endswith("No such file or directory")
    assert "mystery" in mystery
    assert good.endswith("  agrees")
    assert total == "1 of 4 modules agree"
    assert ran.err.count("error: ") == 3


def test_targets_of_custom_calls_are_listed(xlalite: Callable[..., object]) -> None:
    ran = xlalite("run", "--targets")
    assert ran.code == 0
    assert {"TopK", "Sharding", "lapack_sgesdd_ffi"} <= set(ran.out.split())


def test_donated_arguments_do_not_leak_into_the_reference(tmp_path: Path, xlalite: Callable[..., object]) -> None:
    text = (
        "HloModule m, input_output_alias={ {}: (0, {}, must-alias) }\n"
        "ENTRY e {\n  a = f32[8] parameter(0)\n  ROOT b = f32[8] add(a, a)\n}\n"
    )
    (tmp_path / "m.hlo").write_text(text)
    ran = xlalite("run", tmp_path / "m.hlo", "--iterations=2")
    assert ran.code == 0


def test_inputs_from_files(tmp_path: Path, hlo_file: Callable[..., Path], xlalite: Callable[..., object]) -> None:
    path = hlo_file("  a = bf16[2] parameter(0)\n  b = s32[] parameter(1)\n  ROOT t = (bf16[2], s32[]) tuple(a, b)")
    np.savez(tmp_path / "in.npz", np.array([1, 2], ml_dtypes.bfloat16), np.int32(7))
    ran = xlalite("run", path, f"--inputs={tmp_path / 'in.npz'}", "--print_literals")
    assert ran.code == 0
    assert "( {1, 2}, 7 )" in ran.out
    np.save(tmp_path / "in.npy", np.zeros(3))
    ran = xlalite("run", path, f"--inputs={tmp_path / 'in.npy'}")
    assert ran.code == 2
    assert "found float64[3], expected bf16[2], s32[]" in ran.err
    ran = xlalite("run", path, f"--inputs={path}")
    assert ran.code == 2
    assert "expected an .npy or .npz file" in ran.err


@pytest.mark.parametrize("dtype", [dtype for dtype in DType if dtype.is_array], ids=str)
def test_random_values_are_finite_and_repeat(dtype: DType) -> None:
    shape = Shape.array(dtype, (3, 4))
    for large in (False, True):
        one, other = (random_value(shape, np.random.default_rng(1), large_range=large) for _ in range(2))
        assert isinstance(one, np.ndarray)
        assert one.dtype == dtype.numpy
        assert one.tobytes() == np.asarray(other).tobytes()
        assert np.isfinite(one.astype(np.complex128 if dtype.is_complex else np.float64)).all()


def check(found: object, expected: object, bounds: Bounds = DEFAULT) -> list[str]:
    shape = Shape.array(DType.from_numpy(np.asarray(expected).dtype), np.shape(expected))
    return [str(comparison) for comparison in compare(found, expected, shape, bounds)]


def test_nan_equals_nan_and_infinities_have_signs() -> None:
    values = np.array([np.nan, np.inf, -np.inf], np.float32)
    assert check(values, values.copy()) == ["result f32[3]: equal"]
    (text,) = check(-values, values)
    assert "2 of 3 elements differ" in text
    assert "[1]: found -inf, expected inf (relative error inf)" in text


def test_mismatch_shows_index_values_and_distance() -> None:
    expected = np.ones((2, 2), np.float32)
    found = expected.copy()
    found[1, 0] = np.nextafter(np.float32(1), np.float32(2))
    assert check(found, expected) == ["result f32[2,2]: close (at most 1.19e-07)"]
    (text,) = check(found, expected, Bounds(0.0, 0.0))
    assert "[1][0]: found 1.0000001192092896, expected 1.0 (relative error 1.19e-07, 1 ulps)" in text


def test_integers_must_be_equal() -> None:
    big = np.array([2**63 - 1], np.int64)
    (text,) = check(big - 1, big, Bounds(1e3, 1e3))
    assert "1 of 1 elements differ" in text


def test_many_mismatches_are_counted() -> None:
    (text,) = check(np.ones(100, np.float32), np.zeros(100, np.float32))
    assert text.endswith("and 95 more")


PRODUCT_LESS_ITSELF = """\
  x = f32[3] parameter(0)
  y = f32[3] parameter(1)
  m = f32[3] multiply(x, x)
  d = f32[3] subtract(m, y)
  k = f32[] constant(1e8)
  kk = f32[3] broadcast(k), dimensions={}
  ROOT r = f32[3] multiply(d, kk)"""


def test_rounding_is_told_from_faults(
    tmp_path: Path, hlo_file: Callable[..., Path], xlalite: Callable[..., object]
) -> None:
    """A fused multiply-add leaves what rounding the product took away, here 1e8 times larger."""
    x = np.array([1.1, 1.3, 1.7], np.float32)
    np.savez(tmp_path / "in.npz", x=x, y=x * x)
    ran = xlalite("run", hlo_file(PRODUCT_LESS_ITSELF), f"--inputs={tmp_path / 'in.npz'}")
    assert ran.code == 0
    if ": equal" not in ran.out:  # a processor without fused multiply-add
        assert "elements differ by rounding: cpu is " in ran.out
        assert " from the f64 value, interpreter " in ran.out
        assert ": both are rounding, which moves it by " in ran.out


def test_differences_beyond_rounding_are_mismatches() -> None:
    module = parse("ENTRY e { x = f32[2] parameter(0)\n  ROOT r = f32[2] tanh(x) }")
    argument = np.array([0.5, 1.0], np.float32)
    expected = np.tanh(argument)
    (right,) = compare(expected.copy(), expected, Shape.array(DType.F32, (2,)), DEFAULT)
    assert not right.wrong
    asked = []

    def referee() -> Referee:
        asked.append(True)
        return Referee(module, [argument])

    found = expected + np.array([0, 1e-3], np.float32)
    (wrong,) = compare(found, expected, Shape.array(DType.F32, (2,)), DEFAULT, referee)
    assert (wrong.wrong, wrong.rounding) == (1, None)
    assert asked == [True]
    assert "1 of 2 elements differ\n    [1]: found " in str(wrong)


def test_bounds_of_the_user_are_the_law(
    tmp_path: Path, hlo_file: Callable[..., Path], xlalite: Callable[..., object]
) -> None:
    x = np.array([1.1, 1.3, 1.7], np.float32)
    np.savez(tmp_path / "in.npz", x=x, y=x * x)
    ran = xlalite("run", hlo_file(PRODUCT_LESS_ITSELF), f"--inputs={tmp_path / 'in.npz'}", "--abs_error_bound=1e-6")
    assert "rounding" not in ran.out


def test_random_numbers_leave_the_question_open(hlo_file: Callable[..., Path], xlalite: Callable[..., object]) -> None:
    body = """  a = f32[] constant(0)
  b = f32[] constant(1)
  ROOT r = f32[3] rng(a, b), distribution=rng_uniform"""
    ran = xlalite("run", hlo_file(body))
    assert ran.code == 1
    assert "rounding cannot be told from faults: widening " in ran.out


TAKES = """\
HloModule t

take { a = f32[10,4] parameter(0)
  i = s64[3,1] parameter(1)
  ROOT g = f32[3,4] gather(a, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0},
    index_vector_dim=1, slice_sizes={1,4} }

ENTRY e {
  a = f32[10,4] parameter(0)
  i = s32[3] parameter(1)
  n = s32[] parameter(2)
  k = s32[] parameter(3)
  j = s64[3] convert(i)
  v = s64[3,1] reshape(j)
  t = f32[3,4] call(a, v), to_apply=take
  z = s32[] constant(0)
  s = f32[2,4] dynamic-slice(t, n, z), dynamic_slice_sizes={2,4}
  ROOT r = (f32[2,4], s32[]) tuple(s, k)
}"""


def test_made_up_indices_are_in_range() -> None:
    module = parse(TAKES)
    assert largest_indices(module) == {1: 9, 2: 1}
    generator = np.random.default_rng(0)
    drawn = [random_arguments(module, generator) for _ in range(50)]
    assert {int(value) for arguments in drawn for value in np.ravel(arguments[1])} == set(range(10))
    assert {int(arguments[2]) for arguments in drawn} == {0, 1}
    assert min(int(arguments[3]) for arguments in drawn) < -10


def test_made_up_indices_of_updates_leave_room_for_the_window() -> None:
    module = parse("""HloModule t
second { a = f32[] parameter(0)
  ROOT b = f32[] parameter(1) }
ENTRY e {
  a = f32[10,4] parameter(0)
  i = s8[2] parameter(1)
  u = f32[3,2] parameter(2)
  n = u8[2] parameter(3)
  b = f32[10,4] scatter(a, i, u), update_window_dims={0,1}, inserted_window_dims={},
    scatter_dims_to_operand_dims={0,1}, index_vector_dim=0, to_apply=second
  ROOT r = f32[10,4] dynamic-update-slice(b, u, n)
}""")
    assert largest_indices(module) == {1: 2, 3: 2}


def test_arguments_and_results_are_saved_and_compared_with(
    softmax: Path, tmp_path: Path, xlalite: Callable[..., object]
) -> None:
    saved = tmp_path / "saved.npz"
    assert xlalite("run", softmax, f"--save={saved}").code == 0
    with np.load(saved) as arrays:
        assert [*arrays.files] == ["argument_0", "result_0"]
        argument, result = arrays["argument_0"], arrays["result_0"]
    ran = xlalite("run", softmax, f"--inputs={saved}", f"--expected={saved}")
    assert ran.code == 0
    assert "result f32[4,16]: equal" in ran.out
    assert "reference" not in ran.out
    np.savez(tmp_path / "in.npz", argument)
    np.savez(tmp_path / "wrong.npz", result + 1)
    ran = xlalite("run", softmax, f"--inputs={tmp_path / 'in.npz'}", f"--expected={tmp_path / 'wrong.npz'}")
    assert ran.code == 1
    assert f"MISMATCH with {tmp_path / 'wrong.npz'}" in ran.out


SUM_OF_ALL = """HloModule m
sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}
ENTRY main {
  x = f32[4] parameter(0)
  ROOT r = f32[4] all-reduce(x), replica_groups={}, to_apply=sum
}"""


def test_modules_run_on_simulated_devices(tmp_path: Path, xlalite: Callable[..., object]) -> None:
    path = tmp_path / "m.hlo"
    path.write_text(SUM_OF_ALL)
    ran = xlalite("run", path, "--num_replicas=2", "--num_partitions=2")
    assert ran.code == 0, ran.err
    places = [line.split(":")[0].strip() for line in ran.out.splitlines() if "partition" in line]
    assert places == [f"replica {r}, partition {p}" for r in range(2) for p in range(2)]
    assert "run on random inputs" in xlalite("run", path, "--num_replicas=2", "--save=x.npz").err
