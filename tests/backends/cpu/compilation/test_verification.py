"""How often a module is verified: at both ends of the passes, and after each of them where somebody looks at it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from xlalite.backends.base import CompileOptions, get_backend
from xlalite.backends.cpu.compilation import compilation
from xlalite.hlo.errors import PassError, VerificationError
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.text import parse
from xlalite.hlo.types.dtype import DType
from xlalite.hlo.types.shape import Shape
from xlalite.hlo.verification.verifier import verify
from xlalite.passes.core import instrumentation
from xlalite.passes.core.debug_options import DebugOptions
from xlalite.passes.simplify.cse import CommonSubexpressionElimination

TEXT = """HloModule verified
ENTRY e {
  x = f32[31] parameter(0)
  dead = f32[31] tanh(x)
  one = f32[31] exponential(x)
  two = f32[31] exponential(x)
  ROOT sum = f32[31] add(one, two)
}
"""


@pytest.fixture
def verified(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The modules that were verified so far."""
    names: list[str] = []

    def note(module: HloModule) -> None:
        names.append(module.name)
        verify(module)

    for room in (compilation, instrumentation):
        monkeypatch.setattr(room, "verify", note)
    return names


def compile_text(text: str, **options: object) -> None:
    get_backend("cpu").compile(parse(text), CompileOptions(**options))  # type: ignore[arg-type]


def test_a_compilation_verifies_both_ends(verified: list[str]) -> None:
    compile_text(TEXT, use_cache=False)
    assert verified == ["verified", "verified"]


def test_code_out_of_the_cache_is_not_verified_again(verified: list[str]) -> None:
    compile_text(TEXT)
    verified.clear()
    compile_text(TEXT)
    assert verified == []


@pytest.mark.parametrize("look", ["verify_passes", "check_passes", "dump_to"])
def test_passes_are_verified_one_by_one_for_who_looks_at_them(verified: list[str], look: str, tmp_path: Path) -> None:
    debug = DebugOptions(**{look: str(tmp_path) if look == "dump_to" else True})  # type: ignore[arg-type]
    output = get_backend("cpu").compile_to("hlo-backend", parse(TEXT), CompileOptions(debug=debug))
    looked_at = [record for record in output.pass_records if record.changed or look == "check_passes"]
    assert len(looked_at) > 2
    assert len(verified) == 1 + len(looked_at)


def broken(self: CommonSubexpressionElimination, module: HloModule) -> bool:
    root = module.entry_computation.root
    root.shape = Shape.array(DType.F32, (5,))
    return True


def test_the_pass_that_broke_the_module_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CommonSubexpressionElimination, "run", broken)
    with pytest.raises(PassError, match=r"pass cse \(number \d+, pipeline .*\) on module verified: .*f32\[5\]"):
        compile_text(TEXT, use_cache=False)


def cycle(module: HloModule) -> None:
    one, two = (module.entry_computation.find(name) for name in ("one", "dead"))
    one.add_control_predecessor(two)
    two.add_control_predecessor(one)


def wrong_shape(module: HloModule) -> None:
    module.entry_computation.root.shape = Shape.array(DType.F32, (5,))


@pytest.mark.parametrize("use_cache", [False, True])
@pytest.mark.parametrize(("damage", "message"), [(cycle, "depends on itself"), (wrong_shape, r"found shape f32\[5\]")])
def test_invalid_modules_are_refused(damage: Callable[[HloModule], None], message: str, use_cache: bool) -> None:
    compile_text(TEXT)
    module = parse(TEXT)
    damage(module)
    with pytest.raises(VerificationError, match=message):
        get_backend("cpu").compile(module, CompileOptions(use_cache=use_cache))
    with pytest.raises(VerificationError, match="module empty has no entry computation"):
        get_backend("cpu").compile(HloModule("empty"), CompileOptions(use_cache=use_cache))
