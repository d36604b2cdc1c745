"""A process that finds its code in the cache runs no pass, writes no LLVM IR, compiles nothing, and computes the same.

One process compiles a corpus of modules into an empty cache, then another one does the same.
"""

import importlib.util
import json
import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from xlalite.hlo.building.builder import Builder
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.shape import Shape

MASK = """HloModule mask
ENTRY e {
  x = f32[40,40] parameter(0)
  i = s32[40,40] iota(), iota_dimension=0
  j = s32[40,40] iota(), iota_dimension=1
  p = pred[40,40] compare(i, j), direction=GE
  zero = f32[] constant(0)
  zeros = f32[40,40] broadcast(zero), dimensions={}
  ROOT r = f32[40,40] select(p, x, zeros)
}
"""
SORTED_TWICE = """HloModule sorted_twice
less {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = pred[] compare(a, b), direction=LT
}
ENTRY e {
  x = f32[7,9] parameter(0)
  s = f32[7,9] sort(x), dimensions={1}, is_stable=true, to_apply=less
  t = f32[7,9] sort(s), dimensions={0}, is_stable=true, to_apply=less
  ROOT f = c64[7,5] fft(t), fft_type=RFFT, fft_length={9}
}
"""
LOOP = """HloModule loop
body {
  s = (s32[], f32[300]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  one = s32[] constant(1)
  j = s32[] add(i, one)
  v = f32[300] get-tuple-element(s), index=1
  k = f32[300] iota(), iota_dimension=0
  q = f32[300] sqrt(k)
  w = f32[300] add(v, q)
  ROOT t = (s32[], f32[300]) tuple(j, w)
}
condition {
  s = (s32[], f32[300]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(5)
  ROOT p = pred[] compare(i, n), direction=LT
}
ENTRY e {
  x = f32[300] parameter(0)
  zero = s32[] constant(0)
  t = (s32[], f32[300]) tuple(zero, x)
  l = (s32[], f32[300]) while(t), condition=condition, body=body
  ROOT r = f32[300] get-tuple-element(l), index=1
}
"""


def given_and_made() -> HloModule:
    """One constant is used as it is and also folded with another; what is folded is equal to a third."""
    b = Builder("given_and_made")
    x = b.parameter(Shape.array(DType.F32, (200,)))
    c = b.constant(np.arange(200, dtype=np.float32))
    twice = b.constant(np.arange(200, dtype=np.float32) * 2)
    return b.build_module(b.tuple([x * c, x - (c + c), x / (c * c), x + twice]))


def run_corpus(tests: Path, cache: Path, *words: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("run_corpus.py")), str(tests), *words],
        env={**os.environ, "XLALITE_CACHE_DIR": str(cache), "PYTHONPATH": str(tests.parent)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert not done.returncode, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def require_warm_start(tests: Path, cache: Path, *words: str) -> int:
    """The number of modules that both processes ran."""
    first, second = (run_corpus(tests, cache, *words) for _ in range(2))
    assert first["loaded"], "the first process compiles"
    assert first["compiled"] > 0
    assert second["problems"] == []
    assert second["compiled"] == 0
    assert second["loaded"] == []
    assert second["results"] == first["results"]
    return len(second["results"])


def test_constants_of_the_module_are_not_kept_twice(repository: Path, tmp_path: Path) -> None:
    """They are a part of the key, so whoever asks for the code has them."""
    b = Builder("weights")
    x = b.parameter(Shape.array(DType.F32, (64, 64)))
    weights = np.random.default_rng(0).standard_normal((64, 64)).astype(np.float32)
    (tmp_path / "m.hlo").write_text(str(b.build_module(x * b.constant(weights) + x)))
    require_warm_start(repository / "tests", tmp_path / "cache", "0", str(tmp_path / "m.hlo"))
    assert max(path.stat().st_size for path in (tmp_path / "cache").iterdir()) < weights.nbytes


def test_second_process_compiles_nothing(
    repository: Path, tmp_path: Path, random_module: Callable[..., HloModule]
) -> None:
    texts = {"mask": MASK, "sorted_twice": SORTED_TWICE, "loop": LOOP, "given_and_made": str(given_and_made())}
    texts |= {f"random{seed}": str(random_module(random.Random(seed), 15)) for seed in range(8)}
    for name, text in texts.items():
        (tmp_path / f"{name}.hlo").write_text(text)
    files = [tmp_path / f"{name}.hlo" for name in texts] + compiled_by_xla(repository)[::8]
    assert require_warm_start(repository / "tests", tmp_path / "cache", "25", *map(str, files)) > 60


def compiled_by_xla(repository: Path) -> list[Path]:
    return sorted((repository / "tests" / "hlo" / "compiled_corpus").glob("*.hlo"))


@pytest.mark.slow
def test_second_process_compiles_nothing_of_the_whole_corpus(
    repository: Path, tmp_path: Path, random_module: Callable[..., HloModule]
) -> None:
    files = compiled_by_xla(repository)
    for seed in range(100):
        files.append(tmp_path / f"random{seed}.hlo")
        files[-1].write_text(str(random_module(random.Random(seed), 40)))
    assert require_warm_start(repository / "tests", tmp_path / "cache", "1", *map(str, files)) > 1500


@pytest.mark.slow
@pytest.mark.oracle
@pytest.mark.parametrize("spelling", ["hlo", "stablehlo"])
def test_second_process_compiles_nothing_of_what_jax_lowers(repository: Path, tmp_path: Path, spelling: str) -> None:
    jax = pytest.importorskip("jax")
    corpus = repository / "tests" / "hlo" / "jax_corpus"
    programs = [
        *(
            (
                name,
                f,
                [np.random.default_rng(n).standard_normal(size).astype(np.float32) for n, size in enumerate(sizes)],
            )
            for name, (f, sizes, _) in load(corpus / "test_jax_models.py").MODELS.items()
        ),
        *((name, f, given) for name, (f, given, _) in load(corpus / "test_jax_operations.py").OPERATIONS.items()),
        *(
            (name, f, [np.random.default_rng(0).standard_normal((6, 6)).astype(np.float32)])
            for name, f in load(corpus / "test_jax_linear_algebra.py").SINGLE.items()
        ),
    ]
    files = []
    for name, function, arguments in programs:
        lowered = jax.jit(function, keep_unused=True).lower(*arguments)
        path = tmp_path / f"{name}.{spelling}"
        is_hlo = spelling == "hlo"
        text = lowered.compiler_ir("hlo").as_hlo_text(print_large_constants=True) if is_hlo else lowered.as_text()
        path.write_text(text)
        np.savez(path.with_suffix(".npz"), *jax.tree.leaves(arguments))
        files.append(str(path))
    assert require_warm_start(repository / "tests", tmp_path / "cache", "0", *files) == len(programs)


def load(path: Path) -> Any:
    specification = importlib.util.spec_from_file_location(path.stem, path)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module
