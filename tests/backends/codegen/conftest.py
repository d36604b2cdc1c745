"""What tests of kernels share."""

from collections import deque
from collections.abc import Iterator

import pytest

from xlalite.backends.cpu.compilation import stages
from xlalite.backends.cpu.compilation.compilation import Compilation
from xlalite.backends.cpu.compilation.request import CompileRequest
from xlalite.backends.cpu.emission import step_plans
from xlalite.backends.cpu.executable import CpuExecutable


@pytest.fixture(autouse=True)
def improved_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels as LLVM improves them, which large arrays have, however small those of a test are."""
    monkeypatch.setattr(step_plans, "BRIEF_NS", 0.0)


@pytest.fixture(scope="module", autouse=True)
def compiled_once() -> Iterator[None]:
    """Asked for its decisions, an executable has those of its compilation: it need not be compiled once more."""
    run_to, compile_again, latest = stages.run_to, CpuExecutable._compiled_again, deque[Compilation](maxlen=8)

    def run_and_remember(stage: stages.Stage, request: CompileRequest) -> tuple[Compilation, str | bytes]:
        found = run_to(stage, request)
        if stage is stages.OBJECT:
            latest.append(found[0])
        return found

    def remember(executable: CpuExecutable) -> Compilation:
        made = (one for one in latest if one.request is executable._source)
        executable._compilation = executable._compilation or next(made, None)
        return compile_again(executable)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stages, "run_to", run_and_remember)
        patch.setattr(CpuExecutable, "_compiled_again", remember)
        yield
