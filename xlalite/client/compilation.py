"""`xlalite.compile` and `load_executable`: an HLO module, or what was made of one, to something that can be called."""

from __future__ import annotations

import os

from xlalite.backends.base import CompileOptions, Executable, get_backend
from xlalite.flags import Flags, debug_options, extra_passes, flags_from_environment
from xlalite.hlo.ir.module import HloModule


def compile(module: HloModule, backend: str = "cpu", options: CompileOptions | None = None) -> Executable:
    """Compiles an HLO module, which stays as it is.

    Calling the result leaves its arguments as they are, even if the module's `input_output_alias` lets results take
    their memory; `CompileOptions(donate_arguments=True)` makes use of that, and of arrays that are passed to it.

    Args:
        module: The module; `xlalite.hlo.parse` makes one of text.
        backend: `cpu` or `interpreter`.
        options: How to compile; by default as the flags in `XLALITE_FLAGS` say.

    Raises:
        UnknownBackendError: There is no such backend.
        VerificationError: The module is not valid.
        PassError: A pass failed.
        CodegenError: No code could be made.
    """
    if not isinstance(module, HloModule):
        raise TypeError(f"compile: an HloModule is expected, found {type(module).__name__}; hlo.parse(text) makes one")
    if options is None:
        options = compile_options(flags_from_environment())
    return get_backend(backend).compile(module, options)


def load_executable(source: bytes | bytearray | memoryview | str | os.PathLike[str]) -> Executable:
    """The executable that `Executable.serialize` made bytes of; no pass runs, and nothing is compiled.

    The bytes are machine code, which runs when it is called: load none that you would not run as a program.

    Args:
        source: The bytes, or the path of a file that holds them.

    Raises:
        SerializationError: They are no executable, or one of another kind of processor or version of xlalite.
        OSError: The file cannot be read.
    """
    if isinstance(source, str | os.PathLike):
        with open(source, "rb") as file:
            source = file.read()
    return get_backend("cpu").load_executable(bytes(source))


def compile_options(flags: Flags, num_threads: int | None = None) -> CompileOptions:
    """How to compile by the flags; a number of threads given here wins.

    Raises:
        FlagError: An extra pass does not exist.
    """
    threads = num_threads or flags.xlalite_num_threads or None
    return CompileOptions(
        num_threads=threads,
        optimize=not flags.xla_disable_all_hlo_passes,
        debug=debug_options(flags),
        extra_passes=extra_passes(flags),
    )
