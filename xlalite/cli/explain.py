"""`xlalite explain`: what became of an instruction or operation, and every decision about it with its reason."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path

from xlalite.backends.base import get_backend
from xlalite.cli.arguments import CommandParser, add_file, add_platform, flag_words
from xlalite.cli.errors import UsageError
from xlalite.cli.programs import require_python, run_program, split_words
from xlalite.cli.reading import read_module
from xlalite.cli.session_story import SessionStory
from xlalite.cli.wrapping import HEAD, print_lines
from xlalite.client.compilation import compile_options
from xlalite.client.config import GlobalJitLevel
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.text import parse, print_instruction
from xlalite.hlo.types.decision import Decision
from xlalite.hlo.wording import did_you_mean
from xlalite.passes.dump.records import REPORT_SUFFIX

_CODE_STAGE = "llvm-before-optimizations"
_HLO_STAGE = "hlo-backend"
_PLANNER = "kernel planner"
_STANDARD_ERROR = 2


def run(words: Sequence[str]) -> int:
    """Runs the command."""
    own, program = split_words(words)
    if program:
        return _explain_program(program, own)
    arguments, flags = _parser().read(words)
    module = read_module(arguments.file)
    backend = get_backend(arguments.platform)
    if _CODE_STAGE not in backend.stages:
        raise UsageError(f"platform {backend.name} decides nothing: it runs HLO as it is")
    options = compile_options(flags)
    decisions: Sequence[Decision] = backend.compile_to(_CODE_STAGE, module, options).decisions
    optimized = parse(backend.compile_to(_HLO_STAGE, module, options).text)
    if arguments.name is None:
        shown = _all_decisions(decisions) if arguments.all else _by_kernel(decisions, _kernels_of(optimized))
        lines = [*shown, *_outside(decisions)]
    else:
        name = arguments.name.removeprefix("%")
        places = _find(optimized, name)
        decisions = _about({name, *_kernels_of(optimized).get(name, ())}, decisions)
        lines = list(_story(name, module, places, optimized, decisions, in_full=arguments.all))
    if arguments.json:
        print(json.dumps([decision.as_dict() for decision in decisions], indent=1))
    else:
        print_lines(lines, colour=lambda line: "" if line.startswith(" ") else HEAD)
    return 0


def _explain_program(program: list[str], own: list[str]) -> int:
    """Runs a program, and says how its graphs were clustered; with the program's exit code."""
    arguments, _ = _parser_of_programs().read(own)
    require_python(program[0])
    flags = [f"--tf_xla_auto_jit={GlobalJitLevel.ON_1}", "--xla_dump_hlo_module_re=^$", "--tf_xla_clustering_debug"]
    with tempfile.TemporaryDirectory() as directory:
        code = run_program(program, [*flags, *flag_words(own), f"--xla_dump_to={directory}"], stdout=_STANDARD_ERROR)
        sessions = [SessionStory.read(path) for path in sorted(Path(directory).glob(f"*.{REPORT_SUFFIX}"))]
    if arguments.name is not None:
        sessions = [session for session in sessions if session.concerns(arguments.name)]
        if not sessions and not code:
            raise UsageError(f"no session of {program[0]} ran an operation {arguments.name!r}")
    decisions = [each for session in sessions for each in session.decisions_about(arguments.name)]
    if arguments.json:
        print(json.dumps([decision.as_dict() for decision in decisions], indent=1))
    elif arguments.name is None:
        print_lines(session.report for session in sessions)
    else:
        print_lines([line for session in sessions for line in session.places(arguments.name)])
        print_lines(
            [
                f"{who}: {line}"
                for who, group in groupby(decisions, lambda each: each.decided_by)
                for line in _lines_of(list(group), in_full=arguments.all)
            ]
        )
    return code


def _parser() -> CommandParser:
    parser = CommandParser(
        "explain",
        "Compiles a module and says what was decided, and why: which instructions share a kernel and which do not, "
        "where a copy was needed, which kind of kernel was chosen. With a NAME, only what concerns that instruction. "
        "Or runs a Python program, with the JIT on unless it says otherwise itself, and says how its graphs were "
        "clustered and what was compiled; with a NAME, only what concerns that operation.",
        "FILE [NAME] [options]\n       xlalite explain [NAME] [options] -- (script.py | -m module) [arguments]",
    )
    add_file(parser)
    parser.add_argument("name", nargs="?", metavar="NAME", help="an instruction, before or after optimisation")
    add_platform(parser)
    _add_forms(parser)
    return parser


def _parser_of_programs() -> CommandParser:
    parser = CommandParser("explain", "As above.", "[NAME] [options] -- (script.py | -m module) [arguments]")
    parser.add_argument("name", nargs="?", metavar="NAME", help="an operation of a graph that the program runs")
    _add_forms(parser)
    return parser


def _add_forms(parser: CommandParser) -> None:
    parser.add_argument("--all", action="store_true", help="each decision by itself, in the order of passes")
    parser.add_argument("--json", action="store_true", help="print the decisions as JSON")


def _all_decisions(decisions: Sequence[Decision]) -> Iterator[str]:
    """By who decided, in the order of first appearance."""
    for who, group in _by_author(decisions).items():
        yield f"{who}:"
        yield from (f"  {_without_author(one)}" for one in group)


def _by_kernel(decisions: Sequence[Decision], homes: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """First what concerns the module, then each kernel with what was decided about it; those alike are shown once."""
    kernels: dict[str, list[Decision]] = {one.subject[0]: [one] for one in decisions if one.decided_by == _PLANNER}
    rest: list[Decision] = []
    for decision in decisions:
        if decision.decided_by != _PLANNER:
            target = decision.subject[-1]
            home = next((name for name in (*homes.get(target, ()), target) if name in kernels), "")
            kernels.get(home, rest).append(decision)
    for who, group in _by_author(rest).items():
        yield f"{who}:"
        yield from (f"  {line}" for line in _lines_of(group, in_full=False))
    alike: dict[object, list[str]] = {}
    for name, group in kernels.items():
        key = tuple((one.decided_by, one.verdict, one.reason, *one.numbers.items()) for one in group)
        alike.setdefault(key, []).append(name)
    if alike:
        yield "kernels:"
    for name, *others in alike.values():
        plan, *about = kernels[name]
        more = f" and {len(others)} alike ({others[0]}{', ...' if others[1:] else ''})" if others else ""
        yield f"  {name}{more}: {_without_author(plan).removeprefix(f'{name}: ')}"
        for who, of_kernel in groupby(about, lambda one: one.decided_by):
            yield from (f"    {who}: {line}" for line in _lines_of(list(of_kernel), in_full=False))


def _by_author(decisions: Sequence[Decision]) -> dict[str, list[Decision]]:
    by: dict[str, list[Decision]] = {}
    for decision in decisions:
        by.setdefault(decision.decided_by, []).append(decision)
    return by


def _outside(decisions: Sequence[Decision]) -> Iterator[str]:
    """What leaves native code."""
    asked = [decision for decision in decisions if decision.leaves_native_code]
    for decision in asked:
        yield f"slow: {decision.subject[0]} ({decision.numbers['opcode']}) leaves native code: {decision.reason}"
    if not asked:
        yield "all is native code"


def _story(
    name: str,
    given: HloModule,
    places: Sequence[HloInstruction],
    optimized: HloModule,
    decisions: Sequence[Decision],
    *,
    in_full: bool,
) -> Iterator[str]:
    """Where the instruction was, where it is now, and what was decided about it.

    Raises:
        UsageError: Nobody has heard of it.
    """
    before = _find(given, name)
    if not before and not places and not decisions:
        raise UsageError(_unknown(name, given, optimized))
    for instruction in before:
        yield f"given, in {_home(instruction)}: {print_instruction(instruction)}"
    for instruction in places:
        yield f"compiled, in {_home(instruction)}: {print_instruction(instruction)}"
    if before and not places:
        yield "compiled: it is gone: unused, merged with an equal one, or simplified away"
    for who, group in groupby(decisions, lambda decision: decision.decided_by):
        yield from (f"{who}: {line}" for line in _lines_of(list(group), in_full=in_full))
    if not decisions:
        yield "no decision concerns it"


def _lines_of(decisions: Sequence[Decision], *, in_full: bool) -> Iterator[str]:
    """One line each; in short, what was decided alike about one target is a line."""
    if in_full:
        yield from map(_without_author, decisions)
        return
    for target, group in groupby(decisions, lambda one: one.subject[-1:]):
        alike: dict[tuple[str, str], list[Decision]] = {}
        for decision in group:
            alike.setdefault((decision.verdict, decision.reason), []).append(decision)
        for one in alike.values():
            yield from _as_one(target, one)


def _as_one(target: tuple[str, ...], alike: Sequence[Decision]) -> Iterator[str]:
    """Decisions with one verdict and reason about several instructions and a target, with their bytes added up."""
    first = alike[0]
    if len(alike) == 1 or any(set(one.numbers) != {"bytes"} or len(one.subject) < 2 for one in alike):
        yield from map(_without_author, alike)
        return
    names = ", ".join(" -> ".join(one.subject[:-1]) for one in alike)
    total = sum(int(one.numbers["bytes"]) for one in alike)
    yield f"{names} -> {target[0]}: {first.verdict}: {first.reason} (bytes={total})"


def _find(module: HloModule, name: str) -> list[HloInstruction]:
    return [one for one in module.instructions() if one.name == name]


def _kernels_of(module: HloModule) -> dict[str, list[str]]:
    """For the name of each instruction inside of fusions, these fusions."""
    found: dict[str, list[str]] = {}
    for fusion in module.instructions():
        for called in fusion.called_computations if fusion.opcode == "fusion" else ():
            for inside in called.instructions:
                found.setdefault(inside.name, []).append(fusion.name)
    return found


def _about(names: set[str], decisions: Sequence[Decision]) -> list[Decision]:
    return [decision for decision in decisions if names.intersection(decision.subject)]


def _unknown(name: str, *modules: HloModule) -> str:
    names = dict.fromkeys(instruction.name for module in modules for instruction in module.instructions())
    hint = did_you_mean(name, names)
    return f"there is no instruction {name!r} in {modules[0].name}, before or after optimisation{hint}"


def _home(instruction: HloInstruction) -> str:
    return instruction.parent.name if instruction.parent is not None else "no computation"


def _without_author(decision: Decision) -> str:
    return str(decision).removeprefix(f"{decision.decided_by}: ")
