"""Each workload at a tiny size: it compiles and agrees with its peers. No test asserts a time."""

import json
from pathlib import Path

import large_modules
import numpy as np
import pytest
from benchmarks import compile_table, convolution_models, dense_models, roofline, run, training_steps
from benchmarks.harness import Contest, DisagreementError, Workload, agree, measure, workload
from benchmarks.programs import floats, text_contest

import xlalite as xl

_KINDS = list({each.label: each for each in run.workloads()}.values())
_MODELS = [*convolution_models.workloads(), *dense_models.workloads(), *training_steps.workloads()]


@pytest.mark.parametrize("kind", [pytest.param(each, id=each.label) for each in _KINDS if each.sizes])
def test_a_workload_is_native_and_agrees_with_numpy(kind: Workload) -> None:
    contest = kind.build()
    assert not outside_native_code(contest)
    calls = contest.enter(["numpy"])
    assert "numpy" in calls
    assert contest.tolerance is not None
    agree(calls, contest.tolerance)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [pytest.param(each, id=each.label) for each in _KINDS if each.sizes])
def test_a_workload_agrees_with_all_peers(kind: Workload) -> None:
    contest = kind.build()
    assert contest.tolerance is not None
    agree(contest.enter(), contest.tolerance)


@pytest.mark.slow
@pytest.mark.parametrize("model", [pytest.param(each, id=each.label) for each in _MODELS])
def test_a_model_agrees_with_jax(model: Workload) -> None:
    contest = model.build()
    assert contest.tolerance is not None
    agree(contest.enter(["jax"]), contest.tolerance)


@pytest.mark.parametrize(
    "model", [pytest.param(each, id=each.label) for each in _MODELS if "training step [" in each.label]
)
def test_the_training_of_a_model_is_native(model: Workload) -> None:
    assert not outside_native_code(model.build())


def outside_native_code(contest: Contest) -> list[str]:
    """What of a workload's program the evaluator is asked for."""
    executable = contest.executable
    return [str(each) for each in executable.decisions() if each.leaves_native_code] if executable else []


def test_workloads_are_many_and_have_names_of_their_own() -> None:
    names = [each.name for each in run.workloads()]
    assert len(names) >= 90
    assert len(set(names)) == len(names)


def test_a_contestant_that_computes_something_else_is_named() -> None:
    calls = {"xlalite": lambda: np.ones(3), "numpy": lambda: np.array([1.0, 1.0, 2.0])}
    with pytest.raises(DisagreementError, match="result 0 of numpy differs from xlalite by 1"):
        agree(calls, 0.1)
    agree(calls, 0.6)


def test_packages_that_are_not_asked_for_are_not_entered() -> None:
    contest = Contest({"xlalite": lambda: 1}, {"numpy": lambda: lambda: 2, "scipy": lambda: lambda: 3})
    assert {name: call() for name, call in contest.enter(["numpy"]).items()} == {"xlalite": 1, "numpy": 2}


@pytest.mark.parametrize("other", [np.ones((3, 1)), np.full(3, np.nan), (np.ones(3), np.ones(3))])
def test_results_of_another_form_disagree(other: object) -> None:
    with pytest.raises(DisagreementError, match="numpy"):
        agree({"xlalite": lambda: np.ones(3), "numpy": lambda: other}, 1e-4)


def test_contestants_take_turns() -> None:
    turns: list[str] = []
    contestants = {name: lambda name=name: turns.append(name) for name in "ab"}
    times = measure(contestants, 0.0)
    assert set(times) == {"a", "b"}
    rounds = "".join(turns)[6:]
    assert rounds.count("ab") >= 2, rounds


def test_work_is_what_goes_in_and_out_unless_said_otherwise() -> None:
    body = "  x = f32[5,7] parameter(0)\n  ROOT r = f32[5,7] add(x, x)\n"
    assert text_contest(body, floats((5, 7))).work() == (140, 140, 35)
    assert text_contest(body, floats((5, 7)), traffic=(1, 2), flops=3).work() == (1, 2, 3)
    assert Contest({}).work() == (0, 0, 0)


def test_the_limit_is_the_slower_of_memory_and_arithmetic() -> None:
    levels = (roofline.Bandwidth(100, read=10.0, copied=5.0), roofline.Bandwidth(1000, read=2.0, copied=1.0))
    machine = roofline.Roofline(levels, flops=4.0)
    assert machine.seconds(50, 50, 0) == 100 / 5
    assert machine.seconds(80, 20, 0) == 40 / 5 + 60 / 10
    assert machine.seconds(5000, 0, 0) == 5000 / 2
    assert machine.seconds(150, 150, 0) == 300 / 5
    assert machine.seconds(200, 200, 0) == 400 / 1
    assert machine.seconds(10, 0, 400) == 100
    assert machine.seconds(0, 0, 0) == 0


def test_loops_of_the_machine_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(roofline, "SIZES", (1 << 16, 1 << 18))
    machine = roofline.measured(seconds=0.0)
    assert machine.flops > 0
    assert all(level.read > 0 and level.copied > 0 for level in machine.levels)


def test_a_run_prints_a_table_and_writes_figures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def disagreeing() -> Contest:
        return Contest({"xlalite": lambda: np.ones(1), "numpy": lambda: np.zeros(1)})

    tiny = [
        workload("{rows} doubled", _doubled, rows=3),
        Workload("wrong", disagreeing),
        Workload("other", disagreeing),
    ]
    monkeypatch.setattr(run, "workloads", lambda: tiny)
    monkeypatch.setattr(roofline, "SIZES", (1 << 16,))
    figures = tmp_path / "figures.json"
    arguments = ["--only", "o", "--seconds", "0", "--markdown", "--json", str(figures)]
    assert run.main(arguments) == 1
    printed = capsys.readouterr().out
    assert "| 3 doubled |" in printed
    assert "| wrong | result 0 of numpy differs" in printed
    found = json.loads(figures.read_text())
    assert found["machine"]["flops"] > 0
    assert found["rows"][0]["times"]["xlalite"]["best"] > 0
    assert found["rows"][0]["peak_bytes"] >= 24


def test_compilations_are_printed_with_their_phases(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    tiny = workload("{rows} doubled", _doubled, rows=3)
    monkeypatch.setattr(compile_table, "programs", lambda: {"mixed": lambda: xl.hlo.parse(large_modules.mixed(9))})
    monkeypatch.setattr(compile_table, "workloads", lambda: [Workload("none", lambda: Contest({})), tiny])
    assert compile_table.main(["--alone", "--markdown", "--sample", "2", "--seconds", "0"]) == 0
    _, _, *lines = capsys.readouterr().out.splitlines()
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]
    assert [row[0] for row in rows] == ["mixed", "3 doubled"]
    for row in rows:
        *phases, total = map(float, row[2:9])
        assert abs(sum(phases) - total) < 0.02 * total


def _doubled(rows: int = 1) -> Contest:
    body = f"  x = f32[{rows}] parameter(0)\n  ROOT r = f32[{rows}] add(x, x)\n"
    return text_contest(body, floats((rows,)), numpy=lambda _: lambda x: x + x)
