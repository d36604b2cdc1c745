"""From a request to linked code: out of the cache, or step by step."""

from __future__ import annotations

from xlalite.backends.cpu.compilation.linking import LinkedCode, link_code
from xlalite.backends.cpu.compilation.request import CompileRequest
from xlalite.backends.cpu.native.fork_lock import no_fork
from xlalite.backends.cpu.native.object_cache import default_cache
from xlalite.backends.cpu.native.object_code import ObjectCode
from xlalite.backends.watch import note_compilation
from xlalite.hlo import log
from xlalite.hlo.wording import counted


def compile_request(request: CompileRequest) -> LinkedCode:
    """The code of a module, ready to be called.

    Raises:
        VerificationError: The module is not valid.
        PassError: A pass failed.
        CodegenError: No code could be made.
    """
    given = request.given
    if not request.may_be_cached:
        return link_code(_object_code(request), given)
    cache, key = default_cache(), request.cache_key()
    linked = cache.use(key, lambda code: link_code(code, given))
    if linked is None:
        code = _object_code(request)
        cache.add(key, code)
        linked = link_code(code, given)
    return linked


def object_code(request: CompileRequest) -> ObjectCode:
    """The code of a module that was compiled before, out of the cache if that has it still."""
    found = default_cache().use(request.cache_key(), lambda code: code) if request.may_be_cached else None
    return found or _object_code(request)


def _object_code(request: CompileRequest) -> ObjectCode:
    with no_fork:
        # Passes and code generation are most of what a process would load, and a cache hit needs none of it.
        from xlalite.backends.cpu.compilation.stages import OBJECT, run_to

    compilation, _ = run_to(OBJECT, request)
    code = compilation.object_code()
    note_compilation(compilation.report())
    kernels = counted(code.summary.kernels, "kernel")
    log.debug("compiled %s: %s, %.1f ms", code.summary.name, kernels, code.summary.compile_ms)
    return code
