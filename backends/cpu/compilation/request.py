"""What is to be compiled, and how: everything that a compilation, and the key of its code in the cache, depend on."""

from __future__ import annotations

from dataclasses import replace

from xlalite.backends.base import CompileOptions
from xlalite.backends.cpu.native.code_version import version_in_keys
from xlalite.backends.cpu.native.jit_options import JitOptions
from xlalite.backends.cpu.native.object_cache import cache_key
from xlalite.backends.cpu.native.threads import resolve_num_threads
from xlalite.hlo.errors import VerificationError, XlaliteError
from xlalite.hlo.ir.fingerprint import module_fingerprint
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.records import dataclass
from xlalite.passes.core.debug_options import DebugOptions
from xlalite.passes.core.extensions import extensions_stamp, registered_passes


@dataclass(frozen=True, slots=True)
class CompileRequest:
    """A module to compile.

    Attributes:
        given: The module as it was given; nobody changes it.
        options: How to compile it.
        num_threads: Threads that calls use.
        jit_options: How LLVM makes machine code of it.
    """

    given: HloModule
    options: CompileOptions
    num_threads: int
    jit_options: JitOptions

    @staticmethod
    def of(module: HloModule, options: CompileOptions) -> CompileRequest:
        """The request for a module, of which a copy is kept.

        Whether it is valid is asked where it is compiled: code in the cache is of a module that was.

        Raises:
            VerificationError: It is too broken to be copied.
            FlagError: The number of threads is out of range, or the options name a pass that does not exist.
        """
        _check_pass_names(options.debug)
        try:
            given = module.clone()
            _ = given.entry_computation.program_shape
        except XlaliteError as error:
            raise VerificationError(f"compiling module {module.name}: {error}") from error
        jit_options = JitOptions(max_isa=options.debug.cpu_max_isa)
        return CompileRequest(given, options, resolve_num_threads(options.num_threads), jit_options)

    @property
    def may_be_cached(self) -> bool:
        """Whether code out of the cache will do: not when every step is to be seen."""
        return self.options.use_cache and not self.options.debug.dumps_module(self.given.name)

    def undumped(self) -> CompileRequest:
        """The same, without dumps."""
        return replace(self, options=replace(self.options, debug=replace(self.options.debug, dump_to=None)))

    def cache_key(self) -> str:
        """The name under which the code is kept: a digest of everything that decides it."""
        options = self.options
        parts = (
            "module",
            version_in_keys(),
            module_fingerprint(self.given),
            f"threads={self.num_threads} contract={options.fp_contract} optimize={options.optimize}",
            f"donate={options.donate_arguments} winograd={options.debug.cpu_winograd}",
            f"autotune={options.debug.cpu_autotune} excess={options.debug.allow_excess_precision}",
            f"{options.debug.disable_passes} {options.debug.enable_only} {options.debug.fuel}",
            *filter(None, (options.added, extensions_stamp(), "profile" if options.profile else "")),
        )
        return cache_key(parts, self.jit_options)


def _check_pass_names(options: DebugOptions) -> None:
    if options.names_passes:
        # Loads every pass, which a process that finds its code in the cache does without.
        from xlalite.backends.cpu.compilation.pass_table import CPU_PASSES

        options.check_pass_names({**CPU_PASSES, **registered_passes()})
