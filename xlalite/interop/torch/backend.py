"""What torch.compile calls: AOTAutograd with this compiler for forward, backward and inference graphs."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from functorch.compile import min_cut_rematerialization_partition
from torch._decomp import core_aten_decompositions
from torch._dynamo.backends.common import aot_autograd

from xlalite.interop.torch.graph_program import GraphProgram
from xlalite.interop.torch.rules.registry import find_rule
from xlalite.interop.torch.specialising import is_symbolic, sizes_of, specialised

Compiled = Callable[[list[Any]], list[Any]]

_numbers = itertools.count()
_observers: list[Callable[[GraphProgram], None]] = []


def backend(module: torch.fx.GraphModule, example_inputs: Sequence[Any], **options: Any) -> Any:
    """Compiles a graph of Dynamo; `torch.compile(model, backend="xlalite")` calls it."""
    # Recurrent networks are traced step by step: the fused layer of oneDNN has no functional backward.
    with torch.backends.mkldnn.flags(enabled=False):
        return _autograd()(module, example_inputs, **options)


def compile_graph(kind: str, module: torch.fx.GraphModule, example_inputs: Sequence[Any]) -> Any:
    """A function of a graph of ATen operations that takes its inputs in a list."""
    name = f"torch_{kind}_{next(_numbers)}"
    if not is_symbolic(module):
        return _boxed(_observed(GraphProgram(module, name)).__call__)
    programs: dict[object, GraphProgram] = {}

    def call(arguments: list[Any]) -> list[Any]:
        sizes = sizes_of(arguments)
        program = programs.get(sizes)
        if program is None:
            program = programs[sizes] = _observed(
                GraphProgram(specialised(module, arguments), f"{name}_{len(programs)}")
            )
        return program(arguments)

    return _boxed(call)


def observe(observer: Callable[[GraphProgram], None]) -> Callable[[], None]:
    """Shows an observer every program from now on; the function that it gives ends this."""
    _observers.append(observer)
    return lambda: _observers.remove(observer)


def _observed(program: GraphProgram) -> GraphProgram:
    for observer in _observers:
        observer(program)
    return program


def _boxed(call: Compiled) -> Compiled:
    """A function that AOTAutograd may give a list that dies, so that activations die early."""

    def boxed(arguments: list[Any]) -> list[Any]:
        return call(arguments)

    boxed._boxed_call = True  # type: ignore[attr-defined]
    return boxed


@functools.cache
def _autograd() -> Any:
    return aot_autograd(
        fw_compiler=functools.partial(compile_graph, "forward"),
        bw_compiler=functools.partial(compile_graph, "backward"),
        inference_compiler=functools.partial(compile_graph, "inference"),
        partition_fn=min_cut_rematerialization_partition,
        decompositions=_decompositions(),
    )


def _decompositions() -> Mapping[Any, Callable[..., Any]]:
    """How operations are taken apart for which there is no rule."""
    return {
        operation: function
        for operation, function in core_aten_decompositions().items()
        if find_rule(str(operation)) is None
    }
