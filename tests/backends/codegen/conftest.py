"""What tests of kernels share."""

import pytest

from xlalite.backends.cpu.emission import step_plans


@pytest.fixture(autouse=True)
def improved_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels as LLVM improves them, which large arrays have, however small those of a test are."""
    monkeypatch.setattr(step_plans, "BRIEF_NS", 0.0)
