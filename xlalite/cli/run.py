"""`xlalite run`: modules on random inputs, compared with a reference. The flags are those of XLA's run_hlo_module."""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import field, replace
from pathlib import Path

import numpy as np

from xlalite.backends.base import CompileOptions, Executable, get_backend
from xlalite.cli.arguments import CommandParser, add_file, add_inputs, add_platform, add_threads, positive
from xlalite.cli.comparison import Bounds, LeafComparison, compare
from xlalite.cli.errors import ANSWER_IS_NO, REPORTED, WRONG_INPUT, UsageError, message_of
from xlalite.cli.isolation import run_isolated
from xlalite.cli.random_inputs import RESULT, random_arguments, read_arguments, save_values
from xlalite.cli.reading import read_module, shown_name
from xlalite.cli.wrapping import BAD, GOOD, painted, print_lines
from xlalite.client.compilation import compile_options
from xlalite.hlo.errors import EvaluationError
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.records import dataclass
from xlalite.hlo.surroundings.custom_calls import CUSTOM_CALLS
from xlalite.hlo.text import format_literal
from xlalite.hlo.tools.referee import Referee
from xlalite.hlo.types.literal import Literal, Value
from xlalite.hlo.types.shape import Shape
from xlalite.passes.core.debug_options import DebugOptions

_SHOWN_ELEMENTS = 1000


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How modules are run.

    Attributes:
        platform: What runs them.
        reference: What they are compared with; "" for nothing.
        compile: How they are compiled.
        iterations: How often, each time with new inputs.
        seed: Seed of the inputs.
        bounds: How far results may be off.
        large_range: Whether floating-point inputs have all sizes.
        prints_values: Whether inputs and results are printed.
        inputs: A file with the arguments, instead of random ones.
        isolates: Whether each instruction runs by itself, instead of the module as a whole.
        expected: A file with the results to compare with, instead of a reference.
        save: A file to write the arguments and results of the last iteration to.
        replicas: Number of replicas, None for what the module's header says.
        partitions: Number of partitions of each, None for what the header says.
        roofline: A file for the picture of the kernels' speeds.
    """

    platform: str
    reference: str
    compile: CompileOptions
    iterations: int
    seed: int
    bounds: Bounds
    large_range: bool
    prints_values: bool
    inputs: str | None
    isolates: bool
    expected: str | None = None
    save: str | None = None
    replicas: int | None = None
    partitions: int | None = None
    roofline: str | None = None

    @property
    def has_devices(self) -> bool:
        """Whether modules run on several simulated devices."""
        return self.replicas is not None or self.partitions is not None


@dataclass(slots=True)
class _Times:
    """What was measured, in milliseconds."""

    compile_ms: float = 0.0
    runs_ms: list[float] = field(default_factory=list)
    reference_ms: list[float] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Programs:
    """A module, what it was compiled to, and what that is compared with."""

    module: HloModule
    executable: Executable
    reference: Executable | None


def run(words: Sequence[str]) -> int:
    """Runs the command."""
    arguments, flags = _parser().read(words)
    if arguments.targets:
        print("\n".join(sorted(CUSTOM_CALLS)))
        return 0
    if not arguments.files:
        raise UsageError("the following arguments are required: FILE")
    compiling = compile_options(flags, arguments.num_threads)
    compiling = replace(compiling, profile=arguments.profile or arguments.roofline is not None)
    compiling.debug.check_pass_names(get_backend(arguments.platform).passes)
    options = RunOptions(
        platform=arguments.platform,
        reference=arguments.reference_platform,
        compile=compiling,
        iterations=arguments.iterations,
        seed=arguments.random_seed,
        bounds=Bounds(arguments.abs_error_bound, arguments.rel_error_bound),
        large_range=arguments.use_large_float_range,
        prints_values=arguments.print_literals,
        inputs=arguments.inputs,
        isolates=arguments.isolate_instructions,
        expected=arguments.expected,
        save=arguments.save,
        replicas=arguments.num_replicas,
        partitions=arguments.num_partitions,
        roofline=arguments.roofline,
    )
    _check(options)
    if compiling.profile and (options.platform != "cpu" or options.isolates):
        raise UsageError("--profile and --roofline take the times of kernels in whole modules on cpu")
    run_one = run_instructions if options.isolates else run_file
    if len(arguments.files) == 1:
        return 0 if run_one(arguments.files[0], options) else ANSWER_IS_NO
    return _run_all(arguments.files, lambda path: run_one(path, options))


def _check(options: RunOptions) -> None:
    """Refuses options that do not go together.

    Raises:
        UsageError: What does not.
    """
    if options.has_devices and (options.inputs or options.expected or options.save or options.isolates):
        raise UsageError("--num_replicas and --num_partitions run on random inputs, which are compared and not kept")
    if options.expected and options.isolates:
        raise UsageError("--expected has results of the module, not those of --isolate_instructions")


def _run_all(paths: Sequence[str], run_one: Callable[[str], bool]) -> int:
    """Runs all files, whatever comes of each, and ends with a table; the worst outcome is the exit code."""
    outcomes: list[tuple[str, str]] = []
    code = 0
    for path in paths:
        try:
            agrees = run_one(path)
        except REPORTED as error:
            message = message_of(error)
            print(f"{shown_name(path)}: {painted('error:', BAD, sys.stderr)} {message}", file=sys.stderr)
            outcomes.append((shown_name(path), f"error: {message.splitlines()[0]}"))
            code = WRONG_INPUT
            continue
        outcomes.append((shown_name(path), "agrees" if agrees else "MISMATCH"))
        code = max(code, 0 if agrees else ANSWER_IS_NO)
    width = max(len(name) for name, _ in outcomes)
    print()
    for name, outcome in outcomes:
        print(f"{name:{width}}  {painted(outcome, GOOD if outcome == 'agrees' else BAD)}")
    print(f"{sum(outcome == 'agrees' for _, outcome in outcomes)} of {len(outcomes)} modules agree")
    return code


def run_file(path: str, options: RunOptions) -> bool:
    """Runs the module of a file and prints what came of it; says whether all results agree with the reference."""
    module = read_module(path)
    if options.has_devices:
        header = module.config
        module.update_config(
            replica_count=options.replicas or header.replica_count,
            num_partitions=options.partitions or header.num_partitions,
        )
    print(f"{shown_name(path)}: module {module.name} on {options.platform}")
    times = _Times()
    start = time.perf_counter()
    executable = get_backend(options.platform).compile(module, options.compile)
    times.compile_ms = 1e3 * (time.perf_counter() - start)
    programs = _Programs(module, executable, _reference(module, options))
    generator = np.random.default_rng(options.seed)
    agrees = True
    iterate = _iterate_on_devices if options.has_devices else _iterate
    for iteration in range(options.iterations):
        agrees &= iterate(iteration, programs, generator, options, times)
    _print_times(times)
    if options.compile.profile:
        _print_profile(executable, options)
    if not agrees:
        found = painted("MISMATCH", BAD)
        print(f"  {found} with {options.expected or options.reference} (inputs of --random_seed={options.seed})")
    return agrees


def _print_profile(executable: Executable, options: RunOptions) -> None:
    """Where the time of the calls went, beside what the machine could do."""
    from xlalite.backends.roofline import measured_roofline, roofline_svg

    profile = executable.kernel_profile()
    roofline = measured_roofline(options.compile.num_threads, profile.dtypes)
    print(profile.report(roofline.share))
    if options.roofline:
        Path(options.roofline).write_text(roofline_svg(profile, roofline), encoding="utf-8")


def run_instructions(path: str, options: RunOptions) -> bool:
    """Runs each instruction of the module of a file by itself, prints the wrong ones, and says if there are none."""
    module = read_module(path)
    arguments = _arguments(module, np.random.default_rng(options.seed), options)
    print(f"{shown_name(path)}: module {module.name} on {options.platform}, one instruction at a time")
    runs = list(run_isolated(module, arguments, get_backend(options.platform), options.compile, options.bounds))
    wrong = [run for run in runs if not run.agrees]
    for run in wrong:
        print_lines([f"  {run}"])
    print(f"  {len(runs) - len(wrong)} of {len(runs)} instructions agree with the interpreter")
    return not wrong


def _parser() -> CommandParser:
    parser = CommandParser(
        "run",
        "Compiles modules, runs them on random inputs and compares the results with those of a reference platform. "
        "The exit code is 1 when they differ.",
        "FILE... [options]",
    )
    add_file(parser, "files", nargs="*")
    add_platform(parser)
    parser.add_argument(
        "--reference_platform", type=str.lower, default="interpreter", metavar="NAME",
        help="what to compare with (default: interpreter); empty for nothing",
    )  # fmt: skip
    parser.add_argument("--iterations", type=positive, default=1, metavar="N", help="runs, each with new inputs")
    add_threads(parser)
    add_inputs(parser)
    parser.add_argument("--use_large_float_range", action="store_true", help="inputs of all sizes, instead of -1 to 1")
    parser.add_argument(
        "--isolate_instructions", action="store_true",
        help="run each instruction by itself, on the values that it has in the module",
    )  # fmt: skip
    parser.add_argument(
        "--expected", metavar="FILE", help="compare with the results in an .npz or .npy file, instead of the reference"
    )
    parser.add_argument(
        "--save", metavar="FILE", help="write arguments and results to an .npz file, which --inputs and --expected read"
    )
    parser.add_argument("--num_replicas", type=positive, metavar="N", help="run on simulated devices: N replicas ...")
    parser.add_argument(
        "--num_partitions", type=positive, metavar="N", help="... of N partitions, each with its inputs"
    )
    parser.add_argument("--profile", action="store_true", help="print where the time of the runs went, by kernel")
    parser.add_argument(
        "--roofline", metavar="FILE", help="the same, with a picture (SVG) of what the machine could do"
    )
    parser.add_argument("--targets", action="store_true", help="list the custom-call targets that have a meaning")
    parser.add_argument("--print_literals", action="store_true", help="print inputs and results")
    return parser


def _reference(module: HloModule, options: RunOptions) -> Executable | None:
    """What to compare with; it leaves no dumps."""
    if not options.reference or options.expected:
        return None
    undumped = CompileOptions(num_threads=options.compile.num_threads, debug=DebugOptions())
    return get_backend(options.reference).compile(module, undumped)


def _referee(module: HloModule, arguments: list[Value], options: RunOptions) -> Callable[[], Referee | None]:
    """Who settles differences beyond the bounds; nobody when the bounds are the user's own."""
    referee: Referee | None = None

    def call() -> Referee | None:
        nonlocal referee
        if referee is None and options.bounds == Bounds():
            try:
                referee = Referee(module, arguments)
            except EvaluationError as error:
                print(f"  rounding cannot be told from faults: {error}")
        return referee

    return call


def _iterate(
    iteration: int,
    programs: _Programs,
    generator: np.random.Generator,
    options: RunOptions,
    times: _Times,
) -> bool:
    executable, reference = programs.executable, programs.reference
    shapes = executable.program_shape.parameters
    arguments = _arguments(programs.module, generator, options)
    start = time.perf_counter()
    found = executable(*arguments)
    times.runs_ms.append(1e3 * (time.perf_counter() - start))
    result = executable.program_shape.result
    if options.prints_values:
        for number, (argument, shape) in enumerate(zip(arguments, shapes, strict=True)):
            print(f"  argument {number}: {shape.text()} {_shown(argument, shape)}")
        print(f"  result: {result.text()} {_shown(found, result)}")  # type: ignore[arg-type]
    if options.save:
        save_values(options.save, arguments, [found])
    if options.expected:
        leaves = tuple(leaf for _, leaf in result.leaves() if leaf.is_array)
        expected: object = tuple(read_arguments(options.expected, leaves, RESULT))
    elif reference is None:
        return True
    else:
        start = time.perf_counter()
        expected = reference(*arguments)
        times.reference_ms.append(1e3 * (time.perf_counter() - start))
    names = (options.platform, "expected" if options.expected else options.reference)
    comparisons = compare(found, expected, result, options.bounds, _referee(programs.module, arguments, options), names)
    _print_comparisons(iteration, comparisons, options)
    return not any(comparison.wrong for comparison in comparisons)


def _iterate_on_devices(
    iteration: int, programs: _Programs, generator: np.random.Generator, options: RunOptions, times: _Times
) -> bool:
    """Runs on all devices, each with arguments of its own, and compares what each of them gives."""
    config, result = programs.module.config, programs.executable.program_shape.result
    count = config.replica_count * config.num_partitions
    arguments = [_arguments(programs.module, generator, options) for _ in range(count)]
    start = time.perf_counter()
    found = programs.executable.run_on_devices(arguments)
    times.runs_ms.append(1e3 * (time.perf_counter() - start))
    if programs.reference is None:
        return True
    start = time.perf_counter()
    expected = programs.reference.run_on_devices(arguments)
    times.reference_ms.append(1e3 * (time.perf_counter() - start))
    agrees = True
    for device, pair in enumerate(zip(found, expected, strict=True)):
        names = (options.platform, options.reference)
        comparisons = compare(*pair, result, options.bounds, names=names)
        replica, partition = divmod(device, config.num_partitions)
        for comparison in comparisons:
            if iteration == 0 or comparison.wrong:
                print_lines([f"  replica {replica}, partition {partition}: {comparison}"])
        agrees &= not any(comparison.wrong for comparison in comparisons)
    return agrees


def _shown(value: Value, shape: Shape) -> str:
    """A value as a literal; of arrays with more than 1,000 elements the edges, as NumPy shows them."""
    if all(leaf.element_count <= _SHOWN_ELEMENTS for _, leaf in shape.leaves() if leaf.is_array):
        return format_literal(Literal(value, shape))
    if isinstance(value, tuple):
        return "( " + ", ".join(map(_shown, value, shape.elements)) + " )"
    text = np.array2string(np.asarray(value), separator=", ", threshold=_SHOWN_ELEMENTS, prefix="    ")
    return "\n    " + text.replace("[", "{").replace("]", "}")


def _arguments(module: HloModule, generator: np.random.Generator, options: RunOptions) -> list[Value]:
    if options.inputs is not None:
        return read_arguments(options.inputs, module.entry_computation.program_shape.parameters)
    return random_arguments(module, generator, large_range=options.large_range)


def _print_comparisons(iteration: int, comparisons: list[LeafComparison], options: RunOptions) -> None:
    """The first iteration in full, later ones where something is wrong."""
    for comparison in comparisons:
        if iteration == 0 or comparison.wrong:
            where = f"iteration {iteration}: " if options.iterations > 1 else ""
            print_lines([f"  {where}{comparison}"])


def _print_times(times: _Times) -> None:
    best, median = min(times.runs_ms), statistics.median(times.runs_ms)
    repeated = f", median {median:.3f} ms of {len(times.runs_ms)}" if len(times.runs_ms) > 1 else ""
    compared = f"; reference {min(times.reference_ms):.3f} ms" if times.reference_ms else ""
    print(f"  compiled in {times.compile_ms:.1f} ms; ran in {best:.3f} ms{repeated}{compared}")
