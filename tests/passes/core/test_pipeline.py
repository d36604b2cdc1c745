import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import ClassVar

import pytest

from xlalite.hlo.building.create import create
from xlalite.hlo.building.replacement import replace
from xlalite.hlo.errors import FlagError, PassError, VerificationError
from xlalite.hlo.ir.instruction import HloInstruction, tick
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.text import parse
from xlalite.hlo.types.shape import Shape
from xlalite.passes.core.base import HloPass, run_to_fixpoint
from xlalite.passes.core.debug_options import DebugOptions
from xlalite.passes.core.instrumentation import Instrumentation
from xlalite.passes.core.pass_record import PassRecord, time_table
from xlalite.passes.core.pipeline import FixPoint, Pipeline, pass_names
from xlalite.passes.dump.dumper import module_dumper
from xlalite.passes.normalization.defusion import Defusion
from xlalite.passes.registry import PASSES
from xlalite.passes.rewriting.rewrite import RewriteRule, RewriteRun, rules_by_opcode
from xlalite.passes.simplify.algebraic_simplifier import AlgebraicSimplifier
from xlalite.passes.simplify.cse import CommonSubexpressionElimination
from xlalite.passes.simplify.dce import DeadCodeElimination

TEXT = """HloModule m

ENTRY e {
  x = f32[4] parameter(0)
  dead = f32[4] tanh(x)
  a = f32[4] negate(x)
  b = f32[4] negate(a)
  c = f32[4] negate(b)
  ROOT d = f32[4] negate(c)
}
"""


@dataclass(frozen=True, slots=True)
class Toggle(HloPass):
    """Turns the root's operation from one into another."""

    name: ClassVar[str] = "toggle"

    old: str = "negate"
    new: str = "tanh"

    def run(self, module: HloModule) -> bool:
        entry = module.entry_computation
        if entry.root.opcode != self.old:
            return False
        replace(entry.root, create(self.new, entry.root.operands))
        return True


class ToggleBack(Toggle):
    name = "toggle-back"


class ToggleForEver(Toggle):
    name = "toggle-for-ever"
    reaches_fixpoint = True

    def run(self, module: HloModule) -> bool:
        return Toggle("negate", "tanh").run(module) or Toggle("tanh", "negate").run(module)


@dataclass(frozen=True, slots=True)
class Liar(HloPass):
    """Says something else than it did."""

    name: ClassVar[str] = "liar"

    says: bool = True

    def run(self, module: HloModule) -> bool:
        if not self.says:
            Toggle().run(module)
        return self.says


@dataclass(frozen=True, slots=True)
class Breaker(HloPass):
    """Gives the root a wrong shape."""

    name: ClassVar[str] = "breaker"

    def run(self, module: HloModule) -> bool:
        root = module.entry_computation.root
        root.shape = Shape.array(root.shape.dtype, (5,))
        return True


@dataclass(frozen=True, slots=True)
class Crasher(HloPass):
    """Fails with an error that is not xlalite's."""

    name: ClassVar[str] = "crasher"

    def run(self, module: HloModule) -> bool:
        raise ZeroDivisionError("one")


SIMPLIFY = Pipeline("simplify", (DeadCodeElimination(), AlgebraicSimplifier()))


def test_pipeline_records_what_each_pass_did() -> None:
    instrumentation = Instrumentation()
    assert SIMPLIFY.run(parse(TEXT), instrumentation)
    first, second = instrumentation.records
    assert (first.number, first.pipeline, first.name, first.following) == (
        1, "simplify", "dce", "algebraic-simplifier",
    )  # fmt: skip
    assert first.instructions == (6, 5)
    assert second.changed
    assert second.following == "pipeline-end"
    assert PassRecord.from_json(json.loads(json.dumps(asdict(second)))) == second
    assert "algebraic-simplifier" in time_table(instrumentation.records)


def test_pipelines_nest_and_list_their_passes() -> None:
    outer = Pipeline("outer", (SIMPLIFY, FixPoint("fix", (DeadCodeElimination(),))))
    assert pass_names(outer) == ("dce", "algebraic-simplifier")
    module = parse(TEXT)
    assert outer.run(module)
    assert not outer.run(module)


def test_disabled_passes_do_not_run() -> None:
    instrumentation = Instrumentation(DebugOptions(disable_passes=("dce",)))
    SIMPLIFY.run(parse(TEXT), instrumentation)
    assert [record.name for record in instrumentation.records] == ["algebraic-simplifier"]


def test_only_enabled_passes_run() -> None:
    instrumentation = Instrumentation(DebugOptions(enable_only=("dce",)))
    SIMPLIFY.run(parse(TEXT), instrumentation)
    assert [record.name for record in instrumentation.records] == ["dce"]


@pytest.mark.parametrize(("fuel", "negations"), [(0, 4), (1, 2), (2, 0)])
def test_fuel_limits_single_rewrites(fuel: int, negations: int) -> None:
    module = parse(TEXT)
    instrumentation = Instrumentation(DebugOptions(fuel=(("algebraic-simplifier", fuel),)))
    SIMPLIFY.run(module, instrumentation)
    assert sum(i.opcode == "negate" for i in module.entry_computation.instructions) == negations
    assert instrumentation.fuel_taken("algebraic-simplifier") == fuel


def test_fuel_limits_runs_of_passes_that_do_not_count() -> None:
    module = parse(TEXT)
    options = DebugOptions(fuel=(("toggle", 1),))
    Pipeline("p", (Toggle(), ToggleBack("tanh", "negate"), Toggle())).run(module, Instrumentation(options))
    assert module.entry_computation.root.opcode == "negate"


@pytest.mark.parametrize(("says", "message"), [(True, "fingerprint is the same"), (False, "fingerprint differs")])
def test_lying_pass_is_caught(says: bool, message: str) -> None:
    with pytest.raises(PassError, match=f"pass liar .* on module m: .*{message}"):
        Pipeline("p", (Liar(says),)).run(parse(TEXT), Instrumentation(DebugOptions(check_passes=True)))


def test_pass_that_breaks_the_module_is_named() -> None:
    instrumentation = Instrumentation(DebugOptions(verify_passes=True))
    with pytest.raises(PassError, match=r"pass breaker \(number 1, pipeline p\) on module m: .*f32\[5\]"):
        Pipeline("p", (Breaker(), Toggle())).run(parse(TEXT), instrumentation)


@pytest.mark.parametrize("pipeline", [Pipeline("p", (Breaker(),)), FixPoint("p", (Breaker(),), 1)])
def test_pipeline_never_gives_out_a_broken_module(pipeline: Pipeline | FixPoint) -> None:
    with pytest.raises(PassError, match=r"pipeline p on module m: a pass broke the module: .*f32\[5\]"):
        pipeline.run(parse(TEXT))


SCHEDULED = """HloModule m, is_scheduled=true
body {
  p = f32[4] parameter(0)
  n = f32[4] negate(p)
  ROOT m = f32[4] multiply(n, p)
}
ENTRY e {
  x = f32[4] parameter(0)
  late = f32[4] tanh(x)
  f = f32[4] fusion(x), kind=kLoop, calls=body
  ROOT t = (f32[4], f32[4], f32[4]) tuple(f, x, late)
}
"""


def test_passes_keep_the_order_of_a_scheduled_module() -> None:
    module = parse(SCHEDULED)
    assert Pipeline("p", (Defusion(),)).run(module)
    assert module.config.is_scheduled
    assert [i.name for i in module.entry_computation.instructions] == ["x", "late", "n", "m", "t"]


def test_no_pass_is_blamed_for_an_invalid_module() -> None:
    module = parse(TEXT)
    Breaker().run(module)
    with pytest.raises(VerificationError) as caught:
        SIMPLIFY.run(module)
    assert caught.value.__notes__ == ["the module was invalid before the first pass of pipeline simplify"]


def test_error_of_another_kind_keeps_its_class_and_names_the_pass() -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        Pipeline("p", (Crasher(),)).run(parse(TEXT))
    assert caught.value.__notes__ == ["in pass crasher (number 1, pipeline p) on module m"]


def test_fixpoint_stops_when_nothing_changes() -> None:
    instrumentation = Instrumentation()
    FixPoint("fix", SIMPLIFY.stages).run(parse(TEXT), instrumentation)
    assert [record.changed for record in instrumentation.records] == [True, True, False]  # both reach a fixpoint


def test_a_pass_that_would_change_more_has_not_reached_its_fixpoint() -> None:
    with pytest.raises(PassError, match="a second run changed the module again"):
        Pipeline("p", (ToggleForEver(),)).run(parse(TEXT), Instrumentation(DebugOptions(check_passes=True)))


def test_fixpoint_records_a_refusal_once() -> None:
    module = parse(
        """HloModule m

ENTRY e {
  x = f32[4] parameter(0)
  zero = f32[] constant(0)
  zeros = f32[4] broadcast(zero), dimensions={}
  a = f32[4] add(x, zeros)
  b = f32[4] negate(a)
  ROOT c = f32[4] negate(b)
}
"""
    )
    FixPoint("fix", (AlgebraicSimplifier(explain=True),)).run(module)
    assert [str(d) for d in module.decisions if d.verdict == "declined"] == [
        "algebraic-simplifier: add_zero -> a: declined: -0 + 0 is 0"
    ]


OSCILLATING = FixPoint("fix", (Toggle(), ToggleBack("tanh", "negate")))


def test_passes_that_undo_each_other_are_noticed() -> None:
    module = parse(TEXT)
    OSCILLATING.run(module)
    assert [decision.reason for decision in module.decisions] == ["passes undo each other"]
    assert module.decisions[0].subject == ("toggle", "toggle-back")


def test_passes_that_undo_each_other_are_an_error_when_checked() -> None:
    with pytest.raises(PassError, match="fixpoint fix on module m: passes undo each other: toggle, toggle-back"):
        OSCILLATING.run(parse(TEXT), Instrumentation(DebugOptions(check_passes=True)))


def test_run_to_fixpoint_gives_up() -> None:
    assert run_to_fixpoint(Toggle(), parse(TEXT))
    with pytest.raises(PassError, match="liar: module m still changes after 3 runs"):
        run_to_fixpoint(Liar(), parse(TEXT), 3)


def test_options_refuse_what_means_nothing() -> None:
    with pytest.raises(FlagError, match=r"xla_dump_hlo_pass_re: '\(' is not a regular expression"):
        DebugOptions(dump_hlo_pass_re="(")
    with pytest.raises(FlagError, match="xla_fuel: dce=-1"):
        DebugOptions(fuel=(("dce", -1),))
    with pytest.raises(FlagError, match="no pass 'call-inline'; did you mean 'call-inliner'"):
        DebugOptions(disable_passes=("call-inline",)).check_pass_names(PASSES)
    DebugOptions(enable_only=("cse",)).check_pass_names(PASSES)


def dump(tmp_path: Path, pattern: str | None, stages: tuple[HloPass, ...] = SIMPLIFY.stages) -> list[str]:  # type: ignore[assignment]
    options = DebugOptions(dump_to=str(tmp_path / "new"), dump_hlo_pass_re=pattern)
    module = parse(TEXT)
    dumper = module_dumper(options, "a b/c")
    assert dumper is not None
    dumper.write_given(module)
    Pipeline("p", stages).run(module, Instrumentation(options, [dumper]))
    return sorted(path.name.split(".", 1)[1] for path in (tmp_path / "new").iterdir())


def test_dumps_have_xla_s_names(tmp_path: Path) -> None:
    assert dump(tmp_path, ".*") == [
        "a_b_c.0000.p.after_pipeline-start.before_dce.txt",
        "a_b_c.0001.p.after_dce.before_algebraic-simplifier.txt",
        "a_b_c.0002.p.after_algebraic-simplifier.before_pipeline-end.txt",
        "a_b_c.before_optimizations.txt",
    ]
    (last,) = (tmp_path / "new").glob("module_*.0002.*")
    assert parse(last.read_text()).entry_computation.root.opcode == "parameter"


def test_dump_only_after_matching_passes(tmp_path: Path) -> None:
    assert len(dump(tmp_path, "^dce$")) == 2
    assert len(dump(tmp_path / "more", None)) == 1


def test_failure_leaves_a_dump_and_says_where(tmp_path: Path) -> None:
    with pytest.raises(PassError) as caught:
        dump(tmp_path, None, (Breaker(),))
    (path,) = (tmp_path / "new").glob("*failed_breaker.txt")
    assert caught.value.__notes__ == [f"the module as the pass left it: {path}"]


def test_dump_to_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    dumper = module_dumper(DebugOptions(dump_to="-"), "m")
    assert dumper is not None
    dumper.write("x", "x.txt", "text")
    assert capsys.readouterr().out.endswith(".m.x.txt\ntext\n")


def test_modules_that_do_not_match_are_not_dumped(tmp_path: Path) -> None:
    options = DebugOptions(dump_to=str(tmp_path), dump_hlo_module_re="^cluster")
    assert module_dumper(options, "main") is None
    assert module_dumper(options, "cluster_0") is not None


def test_a_pass_that_found_nothing_waits_for_a_change() -> None:
    lines = "x = f32[2] parameter(0)\n a = f32[2] tanh(x)\n b = f32[2] tanh(x)\n ROOT r = f32[2] add(a, b)"
    instrumentation = Instrumentation()
    dce, cse = DeadCodeElimination(), CommonSubexpressionElimination()
    Pipeline("p", (dce, dce, cse, dce, cse, dce)).run(parse(f"HloModule m\nENTRY e {{ {lines} }}"), instrumentation)
    runs = [(record.name, record.changed) for record in instrumentation.records]
    assert runs == [("dce", False), ("cse", True), ("dce", False)]  # cse reaches its fixpoint


@dataclass(frozen=True, slots=True)
class ToggleExponential(Toggle):
    """Says that it is about exponentials."""

    name: ClassVar[str] = "toggle-exponential"
    opcodes: ClassVar[frozenset[str]] = frozenset({"exponential"})


def test_a_pass_runs_where_there_is_an_operation_that_it_is_about() -> None:
    instrumentation = Instrumentation()
    stages = (ToggleExponential(), Toggle(new="exponential"), ToggleExponential("exponential", "tanh"))
    assert Pipeline("p", stages).run(parse(TEXT), instrumentation)
    assert [record.name for record in instrumentation.records] == ["toggle", "toggle-exponential"]


def test_a_pass_that_changes_what_it_is_not_about_is_caught() -> None:
    checked = Instrumentation(DebugOptions(check_passes=True))
    with pytest.raises(PassError, match="toggle-exponential changed module m, which has none of its operations"):
        Pipeline("p", (ToggleExponential(),)).run(parse(TEXT), checked)


@dataclass(frozen=True, slots=True)
class Nearsighted(Toggle):
    """Says that nothing is to be done where it is told what has changed."""

    name: ClassVar[str] = "nearsighted"

    def run_on_changes(self, module: HloModule, since: int) -> bool:
        return False if since else self.run(module)


def test_a_pass_that_misses_a_change_is_caught() -> None:
    stages = (Nearsighted("exponential"), Toggle(), Toggle("tanh", "exponential"), Nearsighted("exponential"))
    Pipeline("p", stages).run(parse(TEXT), Instrumentation())
    instrumentation = Instrumentation(DebugOptions(check_passes=True))
    with pytest.raises(PassError, match="missed what it would have changed"):
        Pipeline("p", stages).run(parse(TEXT), instrumentation)


def test_rules_look_again_at_what_has_changed_and_at_what_is_made_of_it() -> None:
    looked_at: list[str] = []

    def looks(instruction: HloInstruction) -> None:
        looked_at.append(instruction.name)

    lines = "\n".join(f"  x{i + 1} = f32[] negate(x{i})" for i in range(20))
    module = parse(f"HloModule m\nENTRY e {{\n  x0 = f32[] parameter(0)\n{lines}\n}}")
    run = RewriteRun(rules_by_opcode([RewriteRule("negate", looks)]).get)
    assert not run.rewrite(module)
    assert looked_at == [f"x{i}" for i in range(1, 21)]
    looked_at.clear()
    since = tick()
    assert not run.rewrite(module, since)
    assert not looked_at
    entry = module.entry_computation
    entry.find("x9").set_operands([entry.find("x6")])
    assert not run.rewrite(module, since)
    # Both x6 and x8 have other users than before.
    assert looked_at == [f"x{i}" for i in range(6, 16)]
