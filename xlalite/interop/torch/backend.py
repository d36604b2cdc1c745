"""What torch.compile calls: AOTAutograd with this compiler for forward, backward and inference graphs."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import torch
from functorch.compile import min_cut_rematerialization_partition
from torch._decomp import core_aten_decompositions
from torch._dynamo.backends.common import aot_autograd

from xlalite.interop.torch.direct_call import Call, is_plain, reaches_all, with_gradients, without_gradients
from xlalite.interop.torch.graph_program import GraphProgram
from xlalite.interop.torch.rules.registry import find_rule
from xlalite.interop.torch.specialising import is_symbolic, sizes_of, specialised

_numbers = itertools.count()
_observers: list[Callable[[GraphProgram], None]] = []


def backend(module: torch.fx.GraphModule, example_inputs: Sequence[Any], **options: Any) -> Any:
    """Compiles a graph of Dynamo; `torch.compile(model, backend="xlalite")` calls it."""
    graphs = _Graphs()
    # Recurrent networks are traced step by step: the fused layer of oneDNN has no functional backward.
    is_enabled = torch._C._get_mkldnn_enabled()
    torch._C._set_mkldnn_enabled(False)
    try:
        call = graphs.autograd()(module, example_inputs, **options)
    finally:
        torch._C._set_mkldnn_enabled(is_enabled)
    return graphs.direct_call(module, example_inputs) or call


class _Graphs:
    """What AOTAutograd makes of a graph of Dynamo, and what becomes of it."""

    def __init__(self) -> None:
        self._metadata: Any = None
        self._forward: Program | None = None
        self._backward: torch.fx.GraphModule | None = None

    def autograd(self) -> Any:
        return aot_autograd(
            fw_compiler=functools.partial(self._compile_forward, "forward"),
            bw_compiler=functools.partial(compile_graph, "backward"),
            inference_compiler=functools.partial(self._compile_forward, "inference"),
            partition_fn=self._partition,
            decompositions=_decompositions(),
        )

    def direct_call(self, module: torch.fx.GraphModule, example_inputs: Sequence[Any]) -> Call | None:
        """A function that runs the programs without a wrapper, where nothing is to be done but that."""
        program = self._forward
        if not isinstance(program, GraphProgram) or not program.is_whole or program.num_inputs != len(example_inputs):
            return None
        if not is_plain(self._metadata, module, example_inputs):
            return None
        if self._backward is None:
            return without_gradients(program)
        if not reaches_all(self._metadata, self._backward):
            return None
        compile_backward = functools.partial(_program, self._backward, _new_name("backward"))
        return with_gradients(program, compile_backward, self._metadata)

    def _partition(self, joint: torch.fx.GraphModule, inputs: Any, **named: Any) -> Any:
        forward, self._backward = min_cut_rematerialization_partition(joint, inputs, **named)
        return forward, self._backward

    def _compile_forward(self, kind: str, module: torch.fx.GraphModule, example_inputs: Sequence[Any]) -> Any:
        context = torch._guards.TracingContext.try_get()
        self._metadata = context and context.fw_metadata
        self._forward = compile_graph(kind, module, example_inputs)
        return self._forward


def compile_graph(kind: str, module: torch.fx.GraphModule, example_inputs: Sequence[Any]) -> Program:
    """A graph of ATen operations as a program; if sizes vary, as one for each combination of them."""
    name = _new_name(kind)
    return _SizedPrograms(module, name) if is_symbolic(module) else _program(module, name)


def observe(observer: Callable[[GraphProgram], None]) -> Callable[[], None]:
    """Shows an observer every program from now on; the function that it gives ends this."""
    _observers.append(observer)
    return lambda: _observers.remove(observer)


class _SizedPrograms:
    """The programs of a graph whose sizes vary, made when sizes first occur."""

    def __init__(self, module: torch.fx.GraphModule, name: str) -> None:
        self._boxed_call = True
        self._module, self._name = module, name
        self._programs: dict[object, GraphProgram] = {}

    def __call__(self, arguments: list[Any]) -> Sequence[Any]:
        sizes = sizes_of(arguments)
        program = self._programs.get(sizes)
        if program is None:
            concrete = specialised(self._module, arguments)
            program = self._programs[sizes] = _program(concrete, f"{self._name}_{len(self._programs)}")
        return program(arguments)


Program: TypeAlias = GraphProgram | _SizedPrograms


def _new_name(kind: str) -> str:
    return f"torch_{kind}_{next(_numbers)}"


def _program(module: torch.fx.GraphModule, name: str) -> GraphProgram:
    program = GraphProgram(module, name)
    for observer in _observers:
        observer(program)
    return program


@functools.cache
def _decompositions() -> Mapping[Any, Callable[..., Any]]:
    """How operations are taken apart for which there is no rule."""
    return {
        operation: function
        for operation, function in core_aten_decompositions().items()
        if find_rule(str(operation)) is None
    }
