"""Backends: what turns an optimised-to-be module into something that can be called.

A backend is loaded when it is first asked for, so that importing xlalite does not load LLVM.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, fields
from typing import TYPE_CHECKING, ClassVar

from xlalite.hlo.errors import ExecutionError, SerializationError, XlaliteError
from xlalite.hlo.garbage import few_collections
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.late import imported
from xlalite.hlo.records import dataclass
from xlalite.hlo.types.decision import Decision
from xlalite.hlo.types.shape import ProgramShape
from xlalite.hlo.wording import did_you_mean
from xlalite.passes.core.base import HloPass
from xlalite.passes.core.debug_options import DebugOptions
from xlalite.passes.core.extensions import pass_stamp, registered_passes

if TYPE_CHECKING:
    from pathlib import Path

    from xlalite.backends.compile_report import CompileReport
    from xlalite.backends.kernel_profile import KernelProfile
    from xlalite.hlo.surroundings.host_transfers import HostTransfers
    from xlalite.passes.core.pass_record import PassRecord
    from xlalite.passes.core.pipeline import Pipeline


@dataclass(frozen=True, slots=True)
class CompileOptions:
    """How a module is compiled.

    Attributes:
        num_threads: Threads that a call may use; None takes `XLALITE_NUM_THREADS` or the processors at hand.
        fp_contract: Whether a multiplication and an addition inside one kernel may become a fused multiply-add.
        optimize: Whether passes that only make code faster run.
        donate_arguments: Whether a call may overwrite the arguments that the module's `input_output_alias` names: the
            result is then the argument's own array, which spares memory. Without it no call writes to its arguments,
            whatever the module says.
        use_cache: Whether object code is looked up in, and kept in, the caches.
        debug: Dumps and restrictions of passes.
        pipeline: Passes that run instead of those of the backend; only what code generation cannot do without follows.
        extra_passes: (place, pass) pairs: what runs besides, at places such as `before:fusion` or `after:dce`, of which
            `Backend.pipeline` shows the names.
        profile: Whether the code takes the time of each kernel, for `Executable.kernel_profile`.
    """

    num_threads: int | None = None
    fp_contract: bool = True
    optimize: bool = True
    donate_arguments: bool = False
    use_cache: bool = True
    debug: DebugOptions = field(default_factory=DebugOptions)
    pipeline: Pipeline | None = None
    extra_passes: tuple[tuple[str, HloPass], ...] = ()
    profile: bool = False

    @property
    def added(self) -> str:
        """What tells the passes apart that are not the backend's own; empty without any."""
        if self.pipeline is None and not self.extra_passes:
            return ""
        from xlalite.passes.core.insertion import passes_of, pipeline_text

        given = "" if self.pipeline is None else pipeline_text(self.pipeline)
        stamps = [pass_stamp(one) for one in passes_of(self.pipeline)] if self.pipeline is not None else []
        return f"{given}{stamps}{[(place, pass_stamp(one)) for place, one in self.extra_passes]}"


@dataclass(frozen=True, slots=True)
class MemoryAnalysis:
    """Memory of one call, in bytes.

    Attributes:
        argument_size_bytes: Inputs.
        output_size_bytes: Outputs.
        alias_size_bytes: Outputs that lie in the memory of inputs.
        temp_size_bytes: Scratch memory, as buffer assignment laid it out.
        constant_size_bytes: Constants.
        generated_code_size_bytes: Machine code; 0 when there is none.
        report: Buffer assignment as text.
    """

    argument_size_bytes: int
    output_size_bytes: int
    alias_size_bytes: int
    temp_size_bytes: int
    constant_size_bytes: int
    generated_code_size_bytes: int
    report: str

    @property
    def peak_bytes(self) -> int:
        """Everything a call holds at its peak."""
        return (
            self.argument_size_bytes
            + self.output_size_bytes
            - self.alias_size_bytes
            + self.temp_size_bytes
            + self.constant_size_bytes
        )

    def _repr_html_(self) -> str:
        """As notebooks show it."""
        from xlalite.hlo.record_tables import html_table, html_text

        sizes = [(one.name, getattr(self, one.name)) for one in fields(self) if one.name != "report"]
        rows = [(name.replace("_", " "), size) for name, size in [*sizes, ("peak_bytes", self.peak_bytes)]]
        return html_table(("memory", "bytes"), rows) + html_text(self.report)


class Executable(ABC):
    """A compiled module. Call it with arrays in the order of the entry's parameters.

    Attributes:
        name: The module's name.
        backend_name: The name of the backend that made it.
        function: The quickest callable: takes flat arrays, gives an array or a flat tuple of them.
    """

    name: str
    backend_name: ClassVar[str]
    function: Callable[..., object]

    def __repr__(self) -> str:
        size = f", {self.code_size_bytes} bytes of code" if self.code_size_bytes else ""
        return f"<{self.backend_name} executable {self.name}: {self.program_shape}{size}>"

    def _repr_html_(self) -> str:
        """The executable as notebooks show it: with the module that its code was made of, where that is known."""
        from html import escape

        from xlalite.hlo.text import parse
        from xlalite.hlo.tools.graph.notebook import notebook_html

        summary = f"<p>{escape(repr(self))}</p>"
        try:
            return summary + notebook_html(parse(self.as_text("hlo-backend")))
        except XlaliteError:  # it came out of a file, or holds constants that no text shows
            return summary

    @property
    @abstractmethod
    def program_shape(self) -> ProgramShape:
        """Shapes of the parameters and of the result."""

    @abstractmethod
    def __call__(self, *arguments: object) -> object:
        """Runs the module.

        Args:
            *arguments: Anything that converts to an array of the parameter's shape without loss; nested tuples for
                tuple parameters.

        Returns:
            An ndarray, or a (nested) tuple of them for a tuple result; narrow types are those of ml_dtypes.

        Raises:
            ArgumentError: The arguments do not fit the parameters.
            ExecutionError: The module has no value for them, or a custom call failed, whose error is then the cause.
        """

    @abstractmethod
    def run_on_devices(
        self, arguments: Sequence[Sequence[object]], *, transfers: Sequence[HostTransfers] = ()
    ) -> tuple[object, ...]:
        """The results of as many simulated devices as the module's header says, by rank.

        Args:
            arguments: What each device is called with; its rank is `replica * num_partitions + partition`.
            transfers: The host of each device, for infeed, outfeed and sending to the host.

        Raises:
            EvaluationError: There are not as many arguments as devices, or devices wait for each other forever.
            XlaliteError: A call would raise it.
        """

    def serialize(self) -> bytes:
        """Code, constants and signature, which `Backend.load_executable` makes callable again without compiling.

        Raises:
            SerializationError: The backend makes no code.
        """
        raise SerializationError(f"{self.name}: an executable of the {self.backend_name} backend has no code to keep")

    @abstractmethod
    def as_text(self, stage: str) -> str:
        """The program at a stage, as `Backend.compile_to` shows it; `Backend.stages` has the names.

        Raises:
            ValueError: The backend has no such stage.
        """

    def clocked(self) -> Executable:
        """The same program with code that takes the times of its kernels, compiled if there is none yet.

        Itself, if it does, if the backend knows no kernels, or if only its code was loaded.
        """
        return self

    def report(self) -> str:
        """A page for a browser about its compilation, in one piece: what each pass changed, pictures, memory, texts.

        Raises:
            ExecutionError: The backend compiles nothing, or only code was loaded.
        """
        raise ExecutionError(f"{self.name}: the {self.backend_name} backend compiles nothing that a page could show")

    @property
    def takes_times(self) -> bool:
        """Whether its code takes the times of its kernels."""
        return False

    def kernel_profile(self) -> KernelProfile:
        """The times of the kernels in all calls so far.

        Raises:
            ExecutionError: The code takes no times: `CompileOptions(profile=True)` makes such as does.
        """
        raise ExecutionError(f"{self.name}: code of the {self.backend_name} backend takes times of no kernels")

    @property
    def scratch_bytes(self) -> int:
        """Memory that a call takes and gives back, besides its results. Known without running any pass."""
        return 0

    @abstractmethod
    def memory_analysis(self) -> MemoryAnalysis:
        """Memory of one call."""

    @abstractmethod
    def cost_analysis(self) -> Mapping[str, float]:
        """Work of one call: `flops`, `transcendentals`, `bytes accessed`."""

    @property
    @abstractmethod
    def code_size_bytes(self) -> int:
        """Size of the machine code; 0 when there is none. Known without running any pass."""

    @abstractmethod
    def decisions(self) -> Sequence[Decision]:
        """What the compiler decided, in order."""

    @abstractmethod
    def pass_records(self) -> Sequence[PassRecord]:
        """What each pass did: changed or not, time, instruction counts."""

    @abstractmethod
    def compile_report(self) -> CompileReport:
        """Time of each phase, measured by compiling once more without a cache."""


@dataclass(frozen=True, slots=True)
class StageOutput:
    """A module on its way through a backend, stopped at a stage.

    Attributes:
        text: The module there.
        decisions: What was decided so far.
        pass_records: The passes that ran.
    """

    text: str
    decisions: tuple[Decision, ...] = ()
    pass_records: tuple[PassRecord, ...] = ()


@dataclass(frozen=True, slots=True)
class CachedCode:
    """The code of one module in a cache.

    Attributes:
        key: What identifies it.
        size_bytes: Its size, constants included.
        last_use: When it was last read or written, in seconds since the epoch.
        name: The module's name, or a part of the runtime in parentheses; empty when unknown.
        kernels: How many kernels it has.
        compile_ms: How long it took to compile.
    """

    key: str
    size_bytes: int
    last_use: float
    name: str
    kernels: int
    compile_ms: float


class CodeCache(ABC):
    """Compiled code that outlives the process."""

    @property
    @abstractmethod
    def location(self) -> str:
        """Where it is, or why nothing is kept."""

    @property
    @abstractmethod
    def size_limit_bytes(self) -> int:
        """How large it may become; 0 when nothing is kept."""

    @abstractmethod
    def entries(self) -> Sequence[CachedCode]:
        """What is in it, the code not used for longest first."""

    @abstractmethod
    def clear(self) -> None:
        """Removes everything."""

    @abstractmethod
    def export_to(self, path: Path) -> int:
        """Writes all that this version can use into one file, and gives the number of entries.

        Raises:
            CacheError: Nothing is kept.
            OSError: The file cannot be written.
        """

    @abstractmethod
    def import_from(self, path: Path) -> int:
        """Takes over the entries of such a file, all or none, and gives their number.

        Raises:
            CacheError: Nothing is kept; or the file is damaged, or made for another processor or by another version.
            OSError: It cannot be read.
        """


class Backend(ABC):
    """Compiles modules."""

    @property
    @abstractmethod
    def name(self) -> str:
        """Name under which `get_backend` finds it."""

    @abstractmethod
    def compile(self, module: HloModule, options: CompileOptions) -> Executable:
        """Compiles a module, which is left as it is.

        It is verified first, unless code of a module that differs in names at most is in a cache.

        Raises:
            VerificationError: The module is not valid.
            PassError: A pass failed.
            CodegenError: No code could be made.
        """

    def load_executable(self, data: bytes) -> Executable:
        """The executable that `Executable.serialize` made bytes of. The bytes are a program: load none of strangers.

        Raises:
            SerializationError: They are no executable, or one of another kind of processor or version of xlalite.
        """
        raise SerializationError(f"the {self.name} backend has no code to load")

    @property
    def passes(self) -> Mapping[str, type[HloPass]]:
        """Passes by name, for command lines and flags: the backend's, and those that were registered."""
        from xlalite.passes.registry import PASSES

        return {**PASSES, **registered_passes()}

    def pipeline(self, options: CompileOptions) -> Pipeline | None:
        """The passes that a compilation would run, in order; None for a backend that runs none.

        Raises:
            PassError: An extra pass has no place in it.
        """
        return None

    @property
    @abstractmethod
    def stages(self) -> Mapping[str, str]:
        """Names of the stages that `compile_to` and `Executable.as_text` know, in order, with what they show."""

    @abstractmethod
    def compile_to(self, stage: str, module: HloModule, options: CompileOptions) -> StageOutput:
        """Compiles a module, which is left as it is, up to a stage, and no further than that needs.

        Raises:
            ValueError: There is no such stage.
            VerificationError: The module is not valid.
            PassError: A pass failed.
            CodegenError: No code could be made.
        """

    def code_cache(self) -> CodeCache | None:
        """The cache that compiled code is kept in; None for a backend that has none."""
        return None


OTHER_STAGE_NAMES = {
    "optimized-hlo": "hlo-backend",
    "llvm": "llvm-after-optimizations",
    "llvm-optimized": "llvm-after-optimizations",
}
"""Short names of stages, for those backends that have the stages."""


def stage_name(name: str) -> str:
    """The name of a stage as lists have it: `_` counts as `-`, and some have other names."""
    spelled = name.replace("_", "-")
    return OTHER_STAGE_NAMES.get(spelled, spelled)


def checked_stage(name: str, stages: Mapping[str, object], backend: str) -> str:
    """The name of one of the stages, as the list has it.

    Raises:
        ValueError: There is no such stage.
    """
    found = stage_name(name)
    if found not in stages:
        raise ValueError(f"the {backend} backend has no stage {name!r}, expected one of {', '.join(stages)}")
    return found


class UnknownBackendError(XlaliteError, KeyError):
    """No backend has the name that was asked for."""


_BACKENDS = {
    "cpu": "xlalite.backends.cpu.backend:CpuBackend",
    "interpreter": "xlalite.backends.interpreter.backend:InterpreterBackend",
}
_loaded: dict[str, Backend] = {}


def get_backend(name: str) -> Backend:
    """The backend with a name.

    Raises:
        UnknownBackendError: There is none; the message suggests the nearest.
    """
    found = _loaded.get(name)
    if found is not None:
        return found
    if name not in _BACKENDS:
        hint = did_you_mean(name.lower(), _BACKENDS)
        raise UnknownBackendError(f"backend {name!r} does not exist, expected one of {', '.join(_BACKENDS)}{hint}")
    with few_collections:
        backend: Backend = imported(_BACKENDS[name])()
    return _loaded.setdefault(name, backend)
