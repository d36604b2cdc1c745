"""Options that show or restrict what the passes do. Flags and command lines fill them in; passes never read them."""

from __future__ import annotations

import re
from collections.abc import Collection

from xlalite.hlo.errors import FlagError
from xlalite.hlo.records import dataclass
from xlalite.hlo.wording import did_you_mean

CPU_ISAS = ("SSE2", "SSE4_2", "AVX", "AVX2", "AVX512", "AVX512_VNNI", "AVX512_BF16", "AMX")
"""Instruction sets of x86-64 that code can be kept to, each with those before it."""

CPU_WINOGRAD = (0, 2, 4)
"""Sides of tiles of results that there are matrices for; 0 is none."""

DUMP_FORMS = ("proto", "dot", "html", "url")
"""What states of modules may be written as besides text; `url` is a page, and a line in the log that says where."""


@dataclass(frozen=True, slots=True)
class DebugOptions:
    """How one compilation is observed and restricted; the defaults do neither.

    Attributes:
        dump_to: Directory of the dumps, `-` for standard output, None for no dumps.
        dump_hlo_pass_re: Dump the module after each changing pass whose name matches; None for none.
        dump_hlo_module_re: Dump only modules whose name matches; None for all.
        dump_hlo_pipeline_re: Dump passes only of pipelines whose name matches; None for all.
        dump_large_constants: Write HLO without loss; without it dumps of large constants do not reproduce.
        dump_forms: Which of `DUMP_FORMS` are written, too.
        dump_max_modules: How many modules are dumped into a directory; None for any number.
        disable_passes: Names of passes that do not run.
        enable_only: Names of the only passes that run; empty for all.
        fuel: (pass name, number of changes allowed) pairs.
        verify_passes: Verify the module after each pass that changed it, not only at both ends of a pipeline.
        allow_excess_precision: Whether results of operations on floats narrower than f32 may be rounded only where a
            kernel stores or converts them.
        cpu_max_isa: The newest of `CPU_ISAS` that machine code may use; empty for all that the machine has.
        cpu_winograd: Results of a tile, 2 or 4, in which convolutions by windows of three elements may be computed as
            Winograd does, less exactly; 0 for not at all.
        cpu_autotune: Whether products of matrices are tried in a handful of ways, and the quickest is remembered.
        check_passes: Compare fingerprints around each pass with what the pass says, verify after every pass, and make
            an oscillating fixpoint an error.
    """

    dump_to: str | None = None
    dump_hlo_pass_re: str | None = None
    dump_hlo_module_re: str | None = None
    dump_hlo_pipeline_re: str | None = None
    dump_large_constants: bool = False
    dump_forms: tuple[str, ...] = ()
    dump_max_modules: int | None = None
    disable_passes: tuple[str, ...] = ()
    enable_only: tuple[str, ...] = ()
    fuel: tuple[tuple[str, int], ...] = ()
    allow_excess_precision: bool = False
    cpu_max_isa: str = ""
    cpu_winograd: int = 0
    cpu_autotune: bool = False
    verify_passes: bool = False
    check_passes: bool = False

    def __post_init__(self) -> None:
        """Refuses patterns that are no regular expressions, negative fuel and unknown instruction sets.

        Raises:
            FlagError: The flag and what is wrong with its value.
        """
        for field in ("dump_hlo_pass_re", "dump_hlo_module_re", "dump_hlo_pipeline_re"):
            pattern = getattr(self, field)
            try:
                re.compile(pattern or "")
            except re.error as error:
                raise FlagError(f"xla_{field}: {pattern!r} is not a regular expression: {error}") from error
        for name, limit in self.fuel:
            if limit < 0:
                raise FlagError(f"xla_fuel: {name}={limit}: expected a number of changes that is not negative")
        if self.cpu_winograd not in CPU_WINOGRAD:
            raise FlagError(
                f"xla_cpu_winograd: expected one of {', '.join(map(str, CPU_WINOGRAD))}, found {self.cpu_winograd}"
            )
        if self.cpu_max_isa and self.cpu_max_isa not in CPU_ISAS:
            raise FlagError(f"xla_cpu_max_isa: expected one of {', '.join(CPU_ISAS)}, found {self.cpu_max_isa!r}")

    @property
    def text_preset(self) -> str:
        """The printing preset of HLO."""
        return "lossless" if self.dump_large_constants else "default"

    def runs(self, pass_name: str) -> bool:
        """Whether the pass may run at all."""
        if pass_name in self.disable_passes:
            return False
        return not self.enable_only or pass_name in self.enable_only

    @property
    def verifies_passes(self) -> bool:
        """Whether each pass is verified by itself: when somebody looks at single passes."""
        return self.verify_passes or self.check_passes or self.dump_to is not None

    def dumps_module(self, module_name: str) -> bool:
        """Whether anything of the module is dumped."""
        return self.dump_to is not None and _matches(self.dump_hlo_module_re, module_name)

    def dumps_pass(self, pipeline: str, pass_name: str) -> bool:
        """Whether the module is dumped after the pass, if it changed."""
        if self.dump_to is None or self.dump_hlo_pass_re is None:
            return False
        return _matches(self.dump_hlo_pass_re, pass_name) and _matches(self.dump_hlo_pipeline_re, pipeline)

    @property
    def names_passes(self) -> bool:
        """Whether an option names a pass."""
        return bool(self.disable_passes or self.enable_only or self.fuel)

    def check_pass_names(self, known: Collection[str]) -> None:
        """Refuses names of passes that do not exist.

        Raises:
            FlagError: The flag, the name and the nearest name that exists.
        """
        named = {
            "xla_disable_hlo_passes": self.disable_passes,
            "xla_enable_hlo_passes_only": self.enable_only,
            "xla_fuel": tuple(name for name, _ in self.fuel),
        }
        for flag, names in named.items():
            for name in names:
                if name not in known:
                    raise FlagError(f"{flag}: there is no pass {name!r}{did_you_mean(name, known)}")


def _matches(pattern: str | None, text: str) -> bool:
    return pattern is None or re.search(pattern, text) is not None
