"""The scan of all that jax has: what it takes for a difference, and that it finds programs."""

from importlib.util import find_spec

import numpy as np
import pytest
from benchmarks import scan


def test_results_differ_by_more_than_half_of_their_digits() -> None:
    one = np.array([1.0, np.nan, np.inf, -np.inf])
    assert scan.difference([one], [one.copy()], [1e-7]) == ""
    assert scan.difference([one], [one + 1e-4], [1e-7]) == ""
    assert "differs by 0.001" in scan.difference([one], [one + 1e-3], [1e-7])
    assert "differs by nan" in scan.difference([one], [np.ones(4)], [1e-7])
    assert "differs by 1" in scan.difference([np.array([2])], [np.array([3])], [0.0])
    assert scan.difference([np.zeros((0, 2))], [np.zeros((0, 2))], [0.0]) == ""


@pytest.mark.skipif(find_spec("jax") is not None, reason="jax is installed")
def test_without_jax_there_is_nothing_to_compare(capsys: pytest.CaptureFixture[str]) -> None:
    assert scan.main([]) == 0
    assert capsys.readouterr().out == "jax is not installed\n"


@pytest.mark.skipif(find_spec("jax") is None, reason="jax is not installed")
@pytest.mark.parametrize("options", [[], ["--gradient"], ["--batched", "--dtype", "bf16"], ["--dtype", "s32"]])
def test_functions_are_found_and_compared(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, options: list[str]
) -> None:
    monkeypatch.setenv("XLALITE_CACHE", "0")  # which the scan sets, and leaves so
    assert scan.main(["nn.relu", "nn.swish", "--shape", "4,6", "--seconds", "0", "--behind", "1e9", *options]) == 0
    printed = capsys.readouterr().out
    assert "nn.relu of 1" in printed
    assert "functions take longer to compile:" in printed
