"""A compilation with a clock beside it: the steps of `compile.py`, without caches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from xlalite.backends.compile_report import CompileReport, PhaseClock
from xlalite.backends.cpu.compilation.compilation import Compilation
from xlalite.backends.cpu.compilation.interface import Interface
from xlalite.backends.cpu.compilation.linking import LinkedCode, link_code
from xlalite.backends.cpu.compilation.request import CompileRequest


def time_phases(
    given: CompileRequest, make_call: Callable[[Interface, LinkedCode, CompileRequest], object]
) -> CompileReport:
    """Compiles what was compiled once more, from the copy of the module to the call, which `make_call` makes."""
    options, clock = replace(given.options, use_cache=False), PhaseClock()
    request = CompileRequest.of(given.given, options)
    clock.end("copy")
    request.cache_key()
    clock.end("fingerprint")
    compilation = Compilation(request)
    for step in compilation.steps():
        clock.end(step.value)
    linked = link_code(compilation.object_code(), request.given)
    clock.end("linking")
    make_call(Interface.of(request), linked, request)
    clock.end("call")
    return clock.report(request.given.name, compilation.instrumentation.records)
