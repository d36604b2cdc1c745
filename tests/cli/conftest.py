"""What the tests of the command line share."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from xlalite.cli.main import main

SOFTMAX = """\
HloModule softmax

max {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT m = f32[] maximum(a, b)
}

sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}

ENTRY main {
  x = f32[4,16] parameter(0)
  low = f32[] constant(-inf)
  zero = f32[] constant(0)
  m = f32[4] reduce(x, low), dimensions={1}, to_apply=max
  mb = f32[4,16] broadcast(m), dimensions={0}
  d = f32[4,16] subtract(x, mb)
  e = f32[4,16] exponential(d)
  s = f32[4] reduce(e, zero), dimensions={1}, to_apply=sum
  sb = f32[4,16] broadcast(s), dimensions={0}
  ROOT q = f32[4,16] divide(e, sb)
}
"""


@dataclass(frozen=True)
class Ran:
    """What a command did."""

    code: int
    out: str
    err: str


@pytest.fixture
def xlalite(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Ran]:
    """`xlalite("opt", path, ...)`: runs the program in this process, deaf to the caller's flags."""
    monkeypatch.delenv("XLALITE_FLAGS", raising=False)

    def run(*arguments: object) -> Ran:
        code = main([str(argument) for argument in arguments])
        output = capfd.readouterr()
        return Ran(code, output.out, output.err)

    return run


@pytest.fixture
def softmax(tmp_path: Path) -> Path:
    """A file with a softmax."""
    path = tmp_path / "softmax.hlo"
    path.write_text(SOFTMAX)
    return path


@pytest.fixture
def hlo_file(tmp_path: Path) -> Callable[..., Path]:
    """`hlo_file(entry body)`: a file with a module that has only an entry computation."""

    def write(body: str, name: str = "module.hlo") -> Path:
        path = tmp_path / name
        path.write_text(f"HloModule {path.stem}\n\nENTRY main {{\n{body}\n}}\n")
        return path

    return write
