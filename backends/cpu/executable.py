"""Executables of the CPU backend: native code behind a native call."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from xlalite.backends.base import Executable, MemoryAnalysis
from xlalite.backends.cpu.compilation.interface import Interface
from xlalite.backends.cpu.compilation.linking import LinkedCode
from xlalite.backends.cpu.compilation.request import CompileRequest
from xlalite.backends.cpu.emission.emitted_module import ENTRY
from xlalite.backends.cpu.native.call.dispatch import make_call
from xlalite.backends.cpu.native.call.python_call import PythonCall
from xlalite.backends.cpu.native.call.signature import CallSignature, EntryPoint
from xlalite.backends.cpu.native.object_code import ObjectCode
from xlalite.backends.cpu.native.thread_pool import get_pool
from xlalite.backends.watch import note_program
from xlalite.hlo.errors import ArgumentError, ExecutionError, SerializationError, XlaliteError
from xlalite.hlo.ops.evaluation.run_time_sizes import bounded_leaves
from xlalite.hlo.types.shape import ProgramShape, Shape

if TYPE_CHECKING:
    from xlalite.backends.compile_report import CompileReport
    from xlalite.backends.cpu.compilation.compilation import Compilation
    from xlalite.backends.kernel_profile import KernelProfile
    from xlalite.hlo.surroundings.host_transfers import HostTransfers
    from xlalite.hlo.types.decision import Decision
    from xlalite.passes.core.pass_record import PassRecord

Program = Callable[[], CompileRequest] | None
"""Gives what an executable was compiled from; None if nobody knows."""

_TWINS = threading.RLock()
"""Held while a program is compiled with clocks."""
_RELEASE_LOCK_BYTES = 1 << 16
"""Calls that move less than this keep the interpreter lock; taking it again would cost more than the work."""


class CpuExecutable(Executable):
    """A compiled module."""

    backend_name = "cpu"

    def __init__(
        self, interface: Interface, linked: LinkedCode, source: CompileRequest | ObjectCode, program: Program = None
    ) -> None:
        """Makes linked code callable.

        Args:
            interface: How it is called.
            linked: The code.
            source: What it is the code of; of an executable that was loaded, what was loaded.
            program: What gives the source of an executable that was loaded, when it is needed.
        """
        self.name = interface.name
        self._interface, self._source, self._program = interface, source, program
        self._compilation: Compilation | None = None
        record = linked.record
        self._clocked, self._counters = record.clocked, linked.counters
        self._code_bytes, self._arena_bytes = linked.code_bytes, record.arena_bytes
        shape = interface.shape
        is_dynamic = any(s.is_dynamic for s in (*shape.parameters, shape.result))
        signature = CallSignature(
            inputs=bounded_leaves(shape.parameters),
            outputs=bounded_leaves((shape.result,)),
            returns_tuple=is_dynamic or not shape.result.is_array,
            donations=record.donations,
            name=self.name,
        )
        work = sum(s.size_bytes for s in (*signature.inputs, *signature.outputs)) + record.arena_bytes
        entry = EntryPoint(
            linked.module,
            ENTRY,
            get_pool(interface.num_threads if record.forks else 1),
            record.arena_bytes,
            releases_lock=work >= _RELEASE_LOCK_BYTES or record.has_loops,
            failures=linked.failures,
        )
        self._program_shape = shape
        self._is_dynamic = is_dynamic
        self.call: PythonCall = make_call(signature, entry)
        function = self._sized(self.call.function())
        self.function = partial(self._run_connected, function) if record.meets else function
        flat = all(p.is_array for p in shape.parameters) and all(e.is_array for e in shape.result.elements)
        is_plain = flat and not is_dynamic and (shape.result.is_array or shape.result.is_tuple)
        self._run_own = self.function if is_plain else partial(self._run_nested, self.function)
        self._run = self._run_own
        self._twin: CpuExecutable | None = None
        note_program(self)

    @property
    def program_shape(self) -> ProgramShape:
        """Shapes of the parameters and of the result."""
        return self._program_shape

    def __call__(self, *arguments: object) -> object:
        """Runs the module."""
        try:
            return self._run(*arguments)
        except ArgumentError as error:
            raise error.with_traceback(None) from None  # who called is at fault; the way to the check helps nobody

    def run_on_devices(
        self, arguments: Sequence[Sequence[object]], *, transfers: Sequence[HostTransfers] = ()
    ) -> tuple[object, ...]:
        """Runs the code on a thread for each device; they meet in native code."""
        from xlalite.backends.cpu.device_run import run_on_devices
        from xlalite.hlo.evaluation.spmd import check_devices

        counts, pool = (self._interface.replica_count, self._interface.num_partitions), self.call.entry.pool.address
        check_devices(*counts, len(arguments), len(transfers))
        return run_on_devices(self._run_on_device, arguments, counts, pool, transfers)

    @staticmethod
    def loaded(data: bytes, program: Program = None) -> CpuExecutable:
        """The executable that `serialize` made bytes of; `program` gives what it was compiled from, if that is known.

        Raises:
            SerializationError: The bytes are no executable, or one that cannot run here.
        """
        from xlalite.backends.cpu.compilation.serialized import from_bytes

        code, interface, linked = from_bytes(data)
        try:
            return CpuExecutable(interface, linked, code, program)
        except (XlaliteError, LookupError, TypeError, ValueError) as error:
            raise SerializationError(f"loading an executable: {error}") from error

    def serialize(self) -> bytes:
        """The code, its constants and how it is called."""
        # Few executables are kept.
        from xlalite.backends.cpu.compilation.compile import object_code
        from xlalite.backends.cpu.compilation.serialized import self_contained, to_bytes

        source = self._source
        if isinstance(source, CompileRequest):
            source = self_contained(object_code(source), source)
        return to_bytes(source)

    def as_text(self, stage: str) -> str:
        """The program at one of the backend's stages, compiled again up to there."""
        from xlalite.backends.cpu.compilation.stages import compile_to

        return compile_to(stage, self._request()).text

    def memory_analysis(self) -> MemoryAnalysis:
        """Memory of one call, as buffer assignment laid it out."""
        from xlalite.passes.memory.buffers import AllocationKind

        assignment = self._compiled_again().assignment
        sizes = {kind: sum(a.size_bytes for a in assignment.allocations if a.kind is kind) for kind in AllocationKind}
        outputs = _arrays((self._program_shape.result,))
        return MemoryAnalysis(
            argument_size_bytes=sum(s.size_bytes for s in _arrays(self._program_shape.parameters)),
            output_size_bytes=sum(s.size_bytes for s in outputs),
            alias_size_bytes=sum(outputs[donation.output].size_bytes for donation in assignment.donations),
            temp_size_bytes=self._arena_bytes,
            constant_size_bytes=sizes[AllocationKind.CONSTANT],
            generated_code_size_bytes=self._code_bytes,
            report=assignment.report(),
        )

    def cost_analysis(self) -> Mapping[str, float]:
        """Work of one call of the optimised module."""
        from xlalite.hlo.record_tables import FigureTable
        from xlalite.passes.analysis.cost_analysis import cost_analysis

        return FigureTable(cost_analysis(self._compiled_again().optimized).as_dict())

    def report(self) -> str:
        """The page that a dump of its compilation would have; it is compiled once more."""
        from xlalite.backends.cpu.compilation.stages import OBJECT, run_to
        from xlalite.passes.dump.own_page import page_of

        request = self._request()
        options = request.options
        return page_of(
            f"xlalite: {self.name}",
            options.debug,
            lambda debug: run_to(OBJECT, replace(request, options=replace(options, debug=debug))),
        )

    def clocked(self) -> CpuExecutable:
        """The same program with clocks."""
        if self._clocked or (isinstance(self._source, ObjectCode) and self._program is None):
            return self
        with _TWINS:
            if self._twin is None:
                from xlalite.backends.cpu.compilation.compile import compile_request

                given = self._request()
                request = CompileRequest.of(given.given, replace(given.options, profile=True))
                self._twin = CpuExecutable(Interface.of(request), compile_request(request), request)
            return self._twin

    @property
    def takes_times(self) -> bool:
        """Whether its code takes the times of its kernels."""
        return bool(self._clocked)

    def run_clocked(self, *, wanted: bool) -> None:
        """Sends calls to the twin with clocks, which the first of them compiles."""
        self._run = (lambda *arguments: self.clocked()._run_own(*arguments)) if wanted else self._run_own

    def kernel_profile(self) -> KernelProfile:
        """The times that the code took."""
        if not self._clocked:
            raise ExecutionError(f"{self.name}: CompileOptions(profile=True) makes code that takes times")
        from xlalite.backends.kernel_profile import KernelProfile

        return KernelProfile.of(self._clocked, self._counters.tolist())

    @property
    def scratch_bytes(self) -> int:
        """Size of the arena."""
        return self._arena_bytes

    @property
    def code_size_bytes(self) -> int:
        """Size of the object code."""
        return self._code_bytes

    def decisions(self) -> Sequence[Decision]:
        """Decisions of the passes, then of the kernel planner."""
        from xlalite.hlo.record_tables import RecordTable

        return RecordTable(self._compiled_again().decisions)

    def pass_records(self) -> Sequence[PassRecord]:
        """What each pass did."""
        from xlalite.hlo.record_tables import RecordTable

        return RecordTable(self._compiled_again().instrumentation.records)

    def compile_report(self) -> CompileReport:
        """Time of each phase, from the copy of the module to the call."""
        from xlalite.backends.cpu.compilation.phases import time_phases

        return time_phases(self._request(), CpuExecutable)

    def _request(self) -> CompileRequest:
        """What the code was made from.

        Raises:
            ExecutionError: Nobody knows.
        """
        if isinstance(self._source, CompileRequest):
            return self._source.undumped()
        if self._program is None:
            raise ExecutionError(f"{self.name}: an executable that was loaded knows its code, not its program")
        return self._program()

    def _compiled_again(self) -> Compilation:
        """The steps up to the LLVM IR, taken once more when somebody first asks what they made; calls need none."""
        if self._compilation is None:
            from xlalite.backends.cpu.compilation.stages import EMITTED, run_to

            self._compilation, _ = run_to(EMITTED, self._request())
        return self._compilation

    def _run_on_device(self, context: int, arguments: Sequence[object]) -> object:
        """Runs on the device whose context is at an address."""
        return self._run_nested(self._in_context(context), *arguments)

    def _run_connected(self, alone: Callable[..., object], *arguments: object) -> object:
        """Runs on arrays with the host that is connected, if there is one."""
        from xlalite.hlo.surroundings.host_transfers import connected_host

        host = connected_host()
        if host is None:
            return alone(*arguments)
        from xlalite.backends.cpu.native.letters import native_mailbox
        from xlalite.backends.cpu.native.rendezvous import Context

        context = Context(self.call.entry.pool.address, host=native_mailbox(host).address)
        return self._in_context(ctypes.addressof(context))(*arguments)

    def _in_context(self, context: int) -> Callable[..., object]:
        call = PythonCall(self.call.signature, replace(self.call.entry, device=context))
        return self._sized(call.function())

    def _sized(self, function: Callable[..., object]) -> Callable[..., object]:
        """The function of arrays as the program has them."""
        if not self._is_dynamic:
            return function
        from xlalite.backends.cpu.native.call.run_time_sizes import with_run_time_sizes

        return with_run_time_sizes(function, self._program_shape, self.name)

    def _run_nested(self, function: Callable[..., object], *arguments: object) -> object:
        """Runs with tuple parameters or a nested result."""
        from xlalite.backends.arguments import flatten_arguments, nested_value

        flat = flatten_arguments(self.name, arguments, self._program_shape.parameters)
        results = function(*flat)
        arrays = results if isinstance(results, tuple) else (results,)
        return nested_value(self._program_shape.result, iter(arrays))


def _arrays(shapes: Sequence[Shape]) -> tuple[Shape, ...]:
    return tuple(leaf.without_layout() for shape in shapes for _, leaf in shape.leaves() if leaf.is_array)
