"""Autotuning of products: a handful of sizes of their pieces are tried, and what was quickest is remembered.

A choice changes no result. It is kept where object code is kept, by the product, the machine and the number of threads,
so that damaged files, other processes and limits of size are that cache's affair.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from xlalite.backends.base import get_backend
from xlalite.backends.codegen.kernels.dot.kernel import DotKernel
from xlalite.backends.codegen.kernels.dot.pieces import Pieces, choices
from xlalite.backends.codegen.kernels.kernel import Declined
from xlalite.backends.codegen.kernels.planner import plan_kernel
from xlalite.backends.codegen.llvm import TargetInfo
from xlalite.backends.cpu.compilation.request import CompileRequest
from xlalite.backends.cpu.emission.evaluated import evaluated_module
from xlalite.backends.cpu.native.code_version import code_version
from xlalite.backends.cpu.native.object_cache import ObjectCache, cache_key, default_cache
from xlalite.backends.cpu.native.object_code import CodeSummary, ObjectCode
from xlalite.hlo.ir.fingerprint import fingerprint
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.types.decision import Decision, Number
from xlalite.passes.analysis.buffer_values import running_computations
from xlalite.passes.analysis.matrix_products import is_matrix_product
from xlalite.passes.core.debug_options import DebugOptions

_LEAST_NS = 20_000
"""Products that take less are not worth measuring."""

_LEAST_ROUNDS, _MOST_ROUNDS, _SECONDS = 3, 20, 0.5
"""How often all choices take turns: until so much time is over."""

_GAIN = 0.97
"""Part of the planned time that another choice must stay below."""


def tune_products(module: HloModule, request: CompileRequest) -> tuple[Decision, ...]:
    """Writes into the products of an optimised module in which pieces they are quickest, and says so."""
    decisions = []
    for computation in running_computations(module):
        for instruction in computation.instructions:
            product = _product(instruction)
            kernel = None if product is None else _kernel(instruction, request)
            if product is not None and kernel is not None:
                decisions.append(_tune(instruction, product, choices(kernel.plan), request))
    return tuple(decisions)


def _product(instruction: HloInstruction) -> HloInstruction | None:
    """The product that the kernel of an instruction is for, if nobody has configured it."""
    inside = instruction.called_computations[0].instructions if instruction.opcode == "fusion" else (instruction,)
    products = [one for one in inside if is_matrix_product(one)]
    return products[0] if len(products) == 1 and not products[0].backend_config else None


def _kernel(instruction: HloInstruction, request: CompileRequest) -> DotKernel | None:
    """The kernel of a product that takes long enough."""
    target = TargetInfo.host(request.jit_options.max_isa)
    plan = plan_kernel(instruction, (), request.num_threads, target)
    if isinstance(plan, Declined) or not isinstance(plan.kernel, DotKernel) or plan.estimate_ns < _LEAST_NS:
        return None
    return plan.kernel


def _tune(
    instruction: HloInstruction, product: HloInstruction, tried: Sequence[Pieces], request: CompileRequest
) -> Decision:
    cache = default_cache() if request.may_be_cached else ObjectCache.in_memory()
    subject = f"{fingerprint(evaluated_module(instruction))} {' '.join(one.config for one in tried)}"
    options = f"threads={request.num_threads} contract={request.options.fp_contract}"
    key = cache_key(("pieces of a product", code_version(), subject, options), request.jit_options)
    found = cache.use(key, lambda code: Pieces.from_config(str(code.record["config"])))
    figures: dict[str, Number] = {"planned": str(tried[0])}
    if found is not None and found in tried:
        product.backend_config = found.config
        return Decision("autotuning", (instruction.name,), str(found), "remembered", figures)
    seconds = _measured(instruction, product, tried, request)
    best = min(range(len(tried)), key=seconds.__getitem__)
    if seconds[best] > _GAIN * seconds[0]:
        best = 0
    found = tried[best]
    product.backend_config = found.config
    cache.add(key, ObjectCode(b"", (), {"config": found.config}, summary=CodeSummary("(pieces of a product)")))
    figures |= {"us": round(1e6 * seconds[best], 1), "planned_us": round(1e6 * seconds[0], 1), "tried": len(tried)}
    return Decision("autotuning", (instruction.name,), str(found), "the quickest of those tried", figures)


def _measured(
    instruction: HloInstruction, product: HloInstruction, tried: Sequence[Pieces], request: CompileRequest
) -> list[float]:
    """The least seconds of a call with each choice; they take turns."""
    debug = DebugOptions(cpu_max_isa=request.options.debug.cpu_max_isa)
    options = replace(request.options, optimize=False, donate_arguments=False, debug=debug)
    programs = []
    for pieces in tried:
        product.backend_config = pieces.config
        programs.append(get_backend("cpu").compile(evaluated_module(instruction), options))
    product.backend_config = ""
    arguments = [np.ones(operand.shape.dims, operand.shape.dtype.numpy) for operand in instruction.operands]
    best = [math.inf] * len(programs)
    begun, rounds = time.perf_counter(), 0
    while rounds < _LEAST_ROUNDS or (rounds < _MOST_ROUNDS and time.perf_counter() - begun < _SECONDS):
        for number, program in enumerate(programs):
            start = time.perf_counter()
            program(*arguments)
            best[number] = min(best[number], time.perf_counter() - start)
        rounds += 1
    return best
