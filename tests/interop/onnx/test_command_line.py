"""ONNX models in the place of HLO files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from interop.onnx.onnx_models import model, node

from xlalite.cli.main import main
from xlalite.hlo.errors import ParseError
from xlalite.hlo.loading import Form, form_of, load
from xlalite.hlo.types.dtype import DType

MODEL = model([node("Gemm", "x w", "y")], {"x": (DType.F32, ["n", 4])}, "y", {"w": np.ones((4, 4), np.float32)})


@pytest.fixture
def path(tmp_path: Path) -> str:
    found = tmp_path / "model.bin"
    found.write_bytes(MODEL)
    return str(found)


def test_models_are_known_by_content_and_by_suffix() -> None:
    assert form_of(MODEL, "model") is Form.ONNX
    assert form_of(b"", "model.onnx") is Form.ONNX
    assert form_of(b"HloModule m", "m") is Form.TEXT


def test_the_reader_of_hlo_points_to_the_reader_of_models(path: str) -> None:
    with pytest.raises(ParseError, match=r"xlalite\.onnx\.load"):
        load(path)


@pytest.mark.parametrize("command", ["run", "opt", "opt --split-input-file", "explain", "bench --min_time=0.01"])
def test_commands_take_models(command: str, path: str, capfd: pytest.CaptureFixture[str]) -> None:
    name, *options = command.split()
    code = main([name, path, *options])
    output = capfd.readouterr()
    assert code == 0, output.err
    assert output.out


def test_dump_says_what_to_do_with_a_model(path: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["dump", "--to", str(tmp_path / "dumps"), "--", path]) == 2
    assert "holds a module, not a Python program" in capfd.readouterr().err


def test_a_damaged_model_is_an_error_with_the_name_of_the_file(path: str, capfd: pytest.CaptureFixture[str]) -> None:
    Path(path).write_bytes(MODEL[:-9])
    assert main(["run", path]) == 2
    assert "model.bin" in capfd.readouterr().err
