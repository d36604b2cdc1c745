"""`xlalite opt`: passes and stages of a compilation, as text. The flags are those of XLA's hlo-opt."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

from xlalite.backends.base import OTHER_STAGE_NAMES, Backend, CompileOptions, StageOutput, get_backend, stage_name
from xlalite.cli.arguments import CommandParser, add_platform
from xlalite.cli.errors import UsageError
from xlalite.cli.kernel_text import kernel_text
from xlalite.cli.pass_list import list_passes, parse_passes
from xlalite.cli.reading import SEPARATOR, STANDARD_INPUT, read_modules
from xlalite.cli.wrapping import print_lines
from xlalite.client.compilation import compile_options
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.text import parse
from xlalite.hlo.types.decision import Decision
from xlalite.hlo.wording import did_you_mean
from xlalite.passes.core.debug_options import DebugOptions
from xlalite.passes.core.insertion import pipeline_text
from xlalite.passes.core.instrumentation import Instrumentation
from xlalite.passes.core.pass_record import PassRecord, time_table
from xlalite.passes.core.pipeline import Pipeline, Stage
from xlalite.passes.dump.dumper import module_dumper
from xlalite.passes.dump.own_page import page_of

HTML = "html"
"""The stage that shows all others."""

STABLEHLO = "stablehlo"
"""No stage of a compilation: the module in another language."""

_BYTECODE = ".mlirbc"
_PROTO = ".pb"
_PICTURES = {"svg": "for browsers and documents", "dot": "for Graphviz"}
_OTHER_STAGES = {
    STABLEHLO: "the module as it was given, or after --passes, as StableHLO; -o F.mlirbc writes bytecode",
    **{form: f"the module after the passes, as a picture: {shown}" for form, shown in _PICTURES.items()},
    HTML: "all of it, pass by pass, as a page for a browser",
}

_EPILOG = """\
examples:
  xlalite opt f.hlo                                  the whole pipeline, as HLO
  xlalite opt f.hlo --passes=cse,dce                 only these passes
  xlalite opt f.hlo --passes='fusion{max_members=4}' --stage=llvm
  xlalite opt f.hlo --stage=asm -o f.s
  xlalite opt f.hlo --stage=stablehlo -o f.mlir
  xlalite opt f.hlo --stage=svg -o f.svg
  xlalite opt f.hlo --explain --xla_disable_hlo_passes=fusion
"""


def run(words: Sequence[str]) -> int:
    """Runs the command."""
    arguments, flags = _parser().read(words)
    backend = get_backend(arguments.platform)
    if arguments.list_passes:
        print_lines(list_passes(backend.passes).splitlines(), hang=29)
        return 0
    if arguments.list_stages:
        stages = {**backend.stages, **_OTHER_STAGES}
        print_lines((f"{name:28} {shown}" for name, shown in stages.items()), hang=29)
        return 0
    options = compile_options(flags)
    if arguments.print_pipeline:
        pipeline = backend.pipeline(options)
        print("no passes run\n" if pipeline is None else pipeline_text(pipeline), end="")
        return 0
    debug = dataclasses.replace(options.debug, verify_passes=True)
    debug.check_pass_names(backend.passes)
    options = dataclasses.replace(options, donate_arguments=arguments.donate_arguments, debug=debug)
    stage = _checked_stage(arguments.stage, backend)
    passes = None if arguments.passes is None else parse_passes(arguments.passes, backend.passes)
    modules = read_modules(arguments.file, split=arguments.split_input_file)
    if stage == HTML:
        _write(arguments.output, _page(modules, passes, backend, options))
        return 0
    if stage == STABLEHLO and arguments.output.endswith(_BYTECODE):
        _write_bytecode(arguments.output, modules, passes or (), debug)
        return 0
    if stage == "hlo" and arguments.output.endswith(_PROTO):
        _write_proto(arguments.output, modules, passes, backend, options)
        return 0
    if stage in _PICTURES:
        _write(arguments.output, "".join(_picture(stage, module, passes, backend, options) for module in modules))
        return 0
    outputs = [
        _run_passes(module, passes or (), stage, backend, options)
        if passes is not None or stage == STABLEHLO
        else backend.compile_to(stage, module, options)
        for module in modules
    ]
    texts = [
        output.text
        if arguments.kernel is None
        else kernel_text(output.text, arguments.kernel, _compiled(module, passes, backend, options))
        for module, output in zip(modules, outputs, strict=True)
    ]
    _write(arguments.output, f"{SEPARATOR}\n".join(texts))
    for output in outputs:
        _show(output, explain=arguments.explain, time=arguments.time)
    return 0


def _parser() -> CommandParser:
    parser = CommandParser(
        "opt",
        "Runs HLO passes and prints the module at a stage of its compilation. Without --passes the whole pipeline "
        "of the platform runs, up to the stage.",
        "[FILE] [options]",
        _EPILOG,
    )
    parser.add_argument(
        "file",
        nargs="?",
        default=STANDARD_INPUT,
        metavar="FILE",
        help="HLO, StableHLO, a proto or ONNX; '-' is the default",
    )
    parser.add_argument("--passes", metavar="A,B", help="run only these passes, in this order")
    parser.add_argument(
        "--stage", default="hlo", metavar="STAGE", help="what to print (default: hlo); see --list-stages"
    )
    parser.add_argument("--kernel", metavar="NAME", help="of LLVM IR or assembly, only the kernel that computes this")
    add_platform(parser)
    parser.add_argument(
        "-o", dest="output", default="-", metavar="OUT", help="write to a file; HLO to F.pb as HloModuleProto"
    )
    parser.add_argument(
        "--donate_arguments", action="store_true", help="compile for calls that give up what input_output_alias names"
    )
    parser.add_argument("--split-input-file", action="store_true", help=f"take the file apart at lines '{SEPARATOR}'")
    parser.add_argument("--explain", action="store_true", help="print every decision with its reason to stderr")
    parser.add_argument("--time", action="store_true", help="print a table of the passes to stderr")
    parser.add_argument("--list-passes", action="store_true", help="list the passes with their options")
    parser.add_argument("--print-pipeline", action="store_true", help="print the passes of the platform in order")
    parser.add_argument("--list-stages", action="store_true", help="list the stages of the platform")
    return parser


def _checked_stage(name: str, backend: Backend) -> str:
    stages = (*backend.stages, *_OTHER_STAGES)
    if stage_name(name) in stages:
        return stage_name(name)
    hint = did_you_mean(name, (*OTHER_STAGE_NAMES, *stages), f"the stages are {', '.join(stages)}")
    raise UsageError(f"--stage: platform {backend.name} has no stage {name!r}{hint}")


def _run_passes(
    module: HloModule, passes: tuple[Stage, ...], stage: str, backend: Backend, options: CompileOptions
) -> StageOutput:
    """Runs chosen passes; a stage behind HLO adds only the passes that code generation cannot do without."""
    records = _run_pipeline(Pipeline("opt", passes), module, options.debug)
    if stage in ("hlo", STABLEHLO):
        text = module.to_stablehlo() if stage == STABLEHLO else module.to_string(options.debug.text_preset)
        return StageOutput(text, tuple(module.decisions), records)
    unoptimized = dataclasses.replace(options, optimize=False)
    output = backend.compile_to(stage, module, unoptimized)
    return StageOutput(output.text, output.decisions, (*records, *output.pass_records))


def _compiled(
    module: HloModule, passes: tuple[Stage, ...] | None, backend: Backend, options: CompileOptions
) -> HloModule:
    """The program that code is made of; chosen passes have run on it already."""
    chosen = options if passes is None else dataclasses.replace(options, optimize=False)
    return parse(backend.compile_to("hlo-backend", module, chosen).text)


def _picture(
    form: str, module: HloModule, passes: tuple[Stage, ...] | None, backend: Backend, options: CompileOptions
) -> str:
    from xlalite.cli.graph import FORMS  # and with it networkx

    return FORMS[form](_after_passes(module, passes, backend, options).entry_computation, None)


def _after_passes(
    module: HloModule, passes: tuple[Stage, ...] | None, backend: Backend, options: CompileOptions
) -> HloModule:
    if passes is None:
        lossless = dataclasses.replace(options, debug=dataclasses.replace(options.debug, dump_large_constants=True))
        return parse(backend.compile_to("hlo", module, lossless).text)
    _run_pipeline(Pipeline("opt", passes), module, options.debug)
    return module


def _run_pipeline(pipeline: Pipeline, module: HloModule, debug: DebugOptions) -> tuple[PassRecord, ...]:
    dumper = module_dumper(debug, module.name)
    instrumentation = Instrumentation(debug, (dumper,) if dumper else ())
    with dumper or nullcontext():
        if dumper:
            dumper.write_given(module)
        pipeline.run(module, instrumentation)
        if dumper:
            dumper.write_decisions(module.decisions)
    return tuple(instrumentation.records)


def _page(
    modules: Sequence[HloModule], passes: tuple[Stage, ...] | None, backend: Backend, options: CompileOptions
) -> str:
    """What a dump of the modules would show."""

    def run(debug: DebugOptions) -> None:
        for module in modules:
            if passes is None:
                backend.compile(module, dataclasses.replace(options, debug=debug))
            else:
                _run_pipeline(Pipeline("opt", passes), module, debug)

    return page_of(f"xlalite opt: {', '.join(module.name for module in modules)}", options.debug, run)


def _write(path: str, text: str) -> None:
    if path == "-":
        sys.stdout.write(text)
        return
    Path(path).write_text(text, encoding="utf-8")


def _write_proto(
    path: str,
    modules: Sequence[HloModule],
    passes: tuple[Stage, ...] | None,
    backend: Backend,
    options: CompileOptions,
) -> None:
    if len(modules) != 1:
        raise UsageError(f"{path}: a proto holds one module, the input has {len(modules)}")
    Path(path).write_bytes(_after_passes(modules[0], passes, backend, options).to_proto())


def _write_bytecode(path: str, modules: Sequence[HloModule], passes: tuple[Stage, ...], debug: DebugOptions) -> None:
    if len(modules) != 1:
        raise UsageError(f"{path}: bytecode holds one module, the input has {len(modules)}")
    _run_pipeline(Pipeline("opt", passes), modules[0], debug)
    Path(path).write_bytes(modules[0].to_stablehlo("bytecode"))


def _show(output: StageOutput, *, explain: bool, time: bool) -> None:
    if explain:
        _print_decisions(output.decisions)
    if time:
        _print_times(output.pass_records)


def _print_decisions(decisions: Sequence[Decision]) -> None:
    print_lines(map(str, decisions), file=sys.stderr)


def _print_times(records: Sequence[PassRecord]) -> None:
    print(time_table(records), file=sys.stderr)
