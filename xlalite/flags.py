"""The flags of `XLALITE_FLAGS`: XLA's and TensorFlow's spellings where the meaning is the same.

`Flags` is the table: a field is a flag, with its default, what it takes, and one line of help. The parser, the checks
and the help text follow from it. Rooms below the runtime do not read flags; their callers turn flags
into options. Beside them stand the flags of programs, as TensorFlow offers them (`program_flags`).
"""

import contextlib
import dataclasses
import os
import re
import shlex
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Final, TypeVar

from xlalite.hlo.errors import FlagError
from xlalite.hlo.late import imported
from xlalite.hlo.records import dataclass
from xlalite.hlo.wording import did_you_mean
from xlalite.passes.core.base import HloPass
from xlalite.passes.core.debug_options import CPU_ISAS, CPU_WINOGRAD, DUMP_FORMS, DebugOptions
from xlalite.passes.core.extensions import registered_passes

if TYPE_CHECKING:
    from xlalite.program_flags import (
        FLAGS as FLAGS,
        DEFINE_bool as DEFINE_bool,
        DEFINE_boolean as DEFINE_boolean,
        DEFINE_enum as DEFINE_enum,
        DEFINE_float as DEFINE_float,
        DEFINE_integer as DEFINE_integer,
        DEFINE_list as DEFINE_list,
        DEFINE_multi_integer as DEFINE_multi_integer,
        DEFINE_multi_string as DEFINE_multi_string,
        DEFINE_string as DEFINE_string,
        mark_flag_as_required as mark_flag_as_required,
        mark_flags_as_required as mark_flags_as_required,
    )

ENVIRONMENT_NAME: Final = "XLALITE_FLAGS"
THEIR_ENVIRONMENT: Final = {"XLA_FLAGS": "--xla_", "TF_XLA_FLAGS": "--tf_xla_"}
"""The variables of XLA and TensorFlow, and how those of their flags begin that may be known here."""

_OF_PROGRAMS: Final = (
    *("FLAGS", "DEFINE_bool", "DEFINE_boolean", "DEFINE_enum", "DEFINE_float", "DEFINE_integer", "DEFINE_list"),
    *("DEFINE_multi_integer", "DEFINE_multi_string", "DEFINE_string"),
    *("mark_flag_as_required", "mark_flags_as_required"),
)
"""What `program_flags` offers here, imported when it is first asked for."""

T = TypeVar("T")


def __getattr__(name: str) -> object:
    if name not in _OF_PROGRAMS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return imported(f"xlalite.program_flags:{name}")


@dataclass(frozen=True, slots=True)
class Kind:
    """What values a flag takes.

    Attributes:
        shown_as: The value's place holder in the help.
        read: Turns the text into the value; raises ValueError with what it expected.
        adds_up: Whether a repeated flag adds to the values before it, instead of replacing them.
    """

    shown_as: str
    read: Callable[[str], object]
    adds_up: bool = False


def _read_switch(text: str) -> bool:
    try:
        return {"true": True, "1": True, "false": False, "0": False}[text.lower()]
    except KeyError:
        raise ValueError("true or false") from None


def _read_true(text: str) -> bool:
    if not _read_switch(text):
        raise ValueError("true, the only value")
    return True


def _read_names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _read_pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"a regular expression ({error})") from None
    return text


def _read_fuel(text: str) -> tuple[tuple[str, int], ...]:
    entries = [name.partition("=") for name in _read_names(text)]
    if not entries or not all(name and amount.isdecimal() for name, _, amount in entries):
        raise ValueError("pass=N, or several of them with commas between")
    return tuple((name, int(amount)) for name, _, amount in entries)


def _read_isa(text: str) -> str:
    if text.upper() not in CPU_ISAS:
        raise ValueError(f"one of {', '.join(CPU_ISAS)}")
    return text.upper()


def _read_winograd(text: str) -> int:
    if text not in map(str, CPU_WINOGRAD):
        raise ValueError(f"one of {', '.join(map(str, CPU_WINOGRAD))}")
    return int(text)


def _integer(low: int, high: int | None = None) -> Kind:
    expected = f"an integer of at least {low}" if high is None else f"an integer from {low} to {high}"

    def read(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            raise ValueError(expected) from None
        if value < low or (high is not None and value > high):
            raise ValueError(expected)
        return value

    return Kind("N", read)


_SWITCH = Kind("true|false", _read_switch)
_TRUE = Kind("true", _read_true)
_NAMES = Kind("NAME,...", _read_names)
_PATTERN = Kind("REGEX", _read_pattern)
_FUEL = Kind("PASS=N", _read_fuel, adds_up=True)
_DIRECTORY = Kind("DIR", os.path.expanduser)
_ISA = Kind("|".join(CPU_ISAS), _read_isa)
_WINOGRAD = Kind("|".join(map(str, CPU_WINOGRAD)), _read_winograd)


def _flag(default: T, kind: Kind, help_line: str) -> T:
    return dataclasses.field(default=default, metadata={"kind": kind, "help": help_line})


@dataclass(frozen=True, slots=True)
class Flags:
    """The value of every flag; `help_text()` says what each means."""

    xla_dump_to: str = _flag("", _DIRECTORY, "write what the compiler makes of each module into DIR; '-' prints it")
    xla_dump_hlo_as_text: bool = _flag(True, _TRUE, "accepted for old habits' sake: HLO is always dumped as text")
    xla_dump_hlo_as_proto: bool = _flag(False, _SWITCH, "write each dumped state as a protocol buffer, too")
    xla_dump_hlo_as_dot: bool = _flag(False, _SWITCH, "draw each dumped state for Graphviz, too")
    xla_dump_hlo_as_html: bool = _flag(False, _SWITCH, "draw each dumped state as a page for browsers, too")
    xla_dump_hlo_as_url: bool = _flag(False, _SWITCH, "the same, and say in the log where it is")
    xla_dump_max_hlo_modules: int = _flag(-1, _integer(-1), "dump no more modules into a directory; -1 is any number")
    xla_dump_hlo_module_re: str = _flag("", _PATTERN, "dump only modules whose name matches")
    xla_dump_hlo_pass_re: str = _flag("", _PATTERN, "dump around each changing pass whose name matches")
    xla_dump_hlo_pipeline_re: str = _flag("", _PATTERN, "dump passes only of pipelines whose name matches")
    xla_dump_large_constants: bool = _flag(
        False, _SWITCH, "write HLO without loss in dumps and by opt, large constants too"
    )
    xla_disable_hlo_passes: tuple[str, ...] = _flag((), _NAMES, "passes that do not run")
    xla_disable_all_hlo_passes: bool = _flag(
        False, _SWITCH, "run no passes but those that code generation cannot do without"
    )
    xla_enable_hlo_passes_only: tuple[str, ...] = _flag((), _NAMES, "the only passes that run")
    xla_fuel: tuple[tuple[str, int], ...] = _flag((), _FUEL, "let a pass make no more than N changes; may be repeated")
    xla_allow_excess_precision: bool = _flag(
        False, _SWITCH, "round bf16, f16 and narrower floats where kernels store them, not after each operation"
    )
    xla_cpu_max_isa: str = _flag("", _ISA, "machine code uses no newer vector instructions of x86-64 than these")
    xla_cpu_winograd: int = _flag(
        0, _WINOGRAD, "compute 3x3 convolutions in tiles of so many results, with fewer multiplications, less exactly"
    )
    xla_cpu_autotune: bool = _flag(False, _SWITCH, "measure products of matrices in pieces of several sizes, once each")

    tf_xla_auto_jit: int = _flag(0, _integer(-1, 2), "JIT level where a session leaves it to DEFAULT; -1 is off")
    tf_xla_min_cluster_size: int = _flag(4, _integer(1), "dissolve clusters with fewer operations")
    tf_xla_max_cluster_size: int = _flag(2**31 - 1, _integer(1), "clusters do not grow beyond this")
    tf_xla_clustering_fuel: int = _flag(2**63 - 1, _integer(0), "accept no more than N operations into clusters")
    tf_xla_ops_to_cluster: tuple[str, ...] = _flag(
        (), _NAMES, "cluster only these operations or groups (FUSIBLE, PW, ...)"
    )
    tf_xla_cluster_exclude_ops: tuple[str, ...] = _flag((), _NAMES, "operations that are never clustered")
    tf_xla_clustering_debug: bool = _flag(False, _SWITCH, "dump the graph before and after clustering")
    tf_xla_enable_lazy_compilation: bool = _flag(True, _SWITCH, "run a signature uncompiled until it comes back")
    tf_xla_async_compilation: bool = _flag(
        False, _SWITCH, "compile in the background, and run a signature uncompiled until its code is there"
    )
    tf_xla_always_defer_compilation: bool = _flag(False, _SWITCH, "never compile, always run the operations one by one")

    xlalite_extra_passes: tuple[str, ...] = _flag(
        (), _NAMES, "passes that run besides, as before:fusion:my-pass; xlalite opt --print-pipeline shows the places"
    )
    xlalite_keep_faster: bool = _flag(
        False, _SWITCH, "run each cluster compiled and op by op in turn at first, and keep to what was faster"
    )
    xlalite_num_threads: int = _flag(0, _integer(0, 512), "threads of compiled code; 0 takes XLALITE_NUM_THREADS")


def flags_from_environment(environment: Mapping[str, str] | None = None) -> Flags:
    """The flags in the environment: those of `XLALITE_FLAGS`, split as a shell would, over XLA's and TensorFlow's.

    Of `XLA_FLAGS` and `TF_XLA_FLAGS` only those count that are known here, as others are about devices, XLA's own
    passes and TensorFlow.

    Raises:
        FlagError: The text cannot be split, a flag does not exist, or a value is not what the flag takes.
    """
    given = os.environ if environment is None else environment
    flags = Flags()
    for name, prefix in THEIR_ENVIRONMENT.items():
        flags = _understood(given.get(name, ""), prefix, flags)
    text = given.get(ENVIRONMENT_NAME, "")
    try:
        arguments = shlex.split(text)
    except ValueError as error:
        raise FlagError(f"{ENVIRONMENT_NAME}: {error} in {text!r}") from None
    try:
        return parse_flags(arguments, flags)
    except FlagError as error:
        raise FlagError(f"{ENVIRONMENT_NAME}: {error}") from None


def _understood(text: str, prefix: str, flags: Flags) -> Flags:
    """What others' flags say as far as they mean the same here; the rest is for those who read it themselves."""
    for word in text.split():
        if word.startswith(prefix):
            with contextlib.suppress(FlagError):
                flags = parse_flags([word], flags)
    return flags


def parse_flags(arguments: Iterable[str], base: Flags | None = None) -> Flags:
    """The flags with the arguments applied in order: `--name=value`; a switch also as `--name`.

    Raises:
        FlagError: A flag does not exist, or a value is not what the flag takes.
    """
    flags = base or Flags()
    for argument in arguments:
        name, value = _value_of(argument, flags)
        flags = dataclasses.replace(flags, **{name: value})  # type: ignore[arg-type]  # read by the kind of that field
    return flags


def debug_options(flags: Flags) -> DebugOptions:
    """What the flags say about dumps and about the passes that run."""
    return DebugOptions(
        dump_to=flags.xla_dump_to or None,
        dump_hlo_pass_re=flags.xla_dump_hlo_pass_re or None,
        dump_hlo_module_re=flags.xla_dump_hlo_module_re or None,
        dump_hlo_pipeline_re=flags.xla_dump_hlo_pipeline_re or None,
        dump_large_constants=flags.xla_dump_large_constants,
        dump_forms=tuple(form for form in DUMP_FORMS if getattr(flags, f"xla_dump_hlo_as_{form}")),
        dump_max_modules=None if flags.xla_dump_max_hlo_modules < 0 else flags.xla_dump_max_hlo_modules,
        disable_passes=flags.xla_disable_hlo_passes,
        enable_only=flags.xla_enable_hlo_passes_only,
        fuel=flags.xla_fuel,
        allow_excess_precision=flags.xla_allow_excess_precision,
        cpu_max_isa=flags.xla_cpu_max_isa,
        cpu_winograd=flags.xla_cpu_winograd,
        cpu_autotune=flags.xla_cpu_autotune,
    )


def extra_passes(flags: Flags) -> tuple[tuple[str, HloPass], ...]:
    """The passes that run besides, each with its place, as `before:fusion:my-pass` says.

    Raises:
        FlagError: There is no such pass.
    """
    if not flags.xlalite_extra_passes:
        return ()
    from xlalite.passes.registry import PASSES  # and with it all passes

    known = {**PASSES, **registered_passes()}
    places = [text.rpartition(":") for text in flags.xlalite_extra_passes]
    for _, _, name in places:
        if name not in known:
            hint = did_you_mean(name, known, "xlalite.register_pass, or --load FILE.py, makes it known")
            raise FlagError(f"xlalite_extra_passes: there is no pass {name!r}{hint}")
    return tuple((place, known[name]()) for place, _, name in places)


def help_text() -> str:
    """Every flag with its default and its meaning, two lines each."""
    lines = []
    for flag in dataclasses.fields(Flags):
        lines.append(f"  --{flag.name}={flag.metadata['kind'].shown_as}")
        described = f"{flag.metadata['help']} (default: {_shown(flag.default)})"
        lines.append(f"      {described}")
    return "\n".join(lines) + "\n"


_TABLE: Final = {flag.name: flag.metadata["kind"] for flag in dataclasses.fields(Flags)}


def _value_of(argument: str, flags: Flags) -> tuple[str, object]:
    """The name of the flag and the value that it has after the argument."""
    name, equals, text = argument.removeprefix("--").partition("=")
    if not argument.startswith("--"):
        raise FlagError(f"expected --flag=value, found {argument!r}")
    kind = _TABLE.get(name)
    if kind is None:
        raise _unknown(name)
    if not equals:
        if kind not in (_SWITCH, _TRUE):
            raise FlagError(f"--{name} needs a value: --{name}={kind.shown_as}")
        text = "true"
    try:
        value = kind.read(text)
    except ValueError as expected:
        raise FlagError(f"--{name}: expected {expected}, found {text!r}") from None
    return name, getattr(flags, name) + value if kind.adds_up else value


def _unknown(name: str) -> FlagError:
    known = [f"--{flag}" for flag in _TABLE]
    hint = did_you_mean("--" + name.replace("-", "_"), known, "`xlalite flags` lists those there are")
    return FlagError(f"unknown flag --{name}{hint}")


def _shown(default: object) -> str:
    if isinstance(default, bool):
        return str(default).lower()
    return str(default) if isinstance(default, int) else "none"
