"""Calls that need nothing of AOTAutograd but its graphs: no wrapper runs around the programs.

Of a function that mutates nothing, gives no views of arguments and is compiled as a whole, a call without gradients is
a call of its program; one with gradients is a `torch.autograd.Function` of the two programs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch._functorch._aot_autograd.schemas import ViewAndMutationMeta
from torch.fx.node import Node

from xlalite.interop.torch.graph_program import GraphProgram

Call = Callable[..., Sequence[Any]]
Program = Callable[[list[Any]], Sequence[Any]]
_is_transforming = torch._C._are_functorch_transforms_active
_is_grad_enabled = torch.is_grad_enabled

# What runs between Dynamo's frames is never a program to be traced, also where `backward` is called within one.
torch._dynamo.trace_rules.add("xlalite")


def is_plain(metadata: ViewAndMutationMeta, module: torch.fx.GraphModule, inputs: Sequence[Any]) -> bool:
    """Whether the arguments and results of a function are those of its graph.

    Args:
        metadata: What AOTAutograd found out about the function.
        module: Dynamo's graph.
        inputs: Its inputs.
    """
    (output,) = module.graph.find_nodes(op="output")
    results = [one.meta.get("example_value") if isinstance(one, Node) else one for one in output.args[0]]
    values = (*inputs, *(one for one in results if one is not None))
    return all(type(value) in _PLAIN for value in values) and not (
        metadata.num_mutated_inp_runtime_indices
        or metadata.num_mutated_graph_handled_indices
        or metadata.num_outputs_aliased
        or metadata.num_intermediate_bases
        or metadata.tokens
        or metadata.num_backward_tokens
        or metadata.num_graphsafe_rng_states
        or metadata.is_rng_op_functionalized
        or metadata.num_symints_saved_for_bw
        or metadata.num_opaque_objects_saved_for_bw
        or metadata.num_tensors_saved_with_no_vc_check
        or metadata.grad_enabled_mutation is not None
    )


def reaches_all(metadata: ViewAndMutationMeta, backward: torch.fx.GraphModule) -> bool:
    """Whether every argument that torch should go on from has a gradient; else it must be cut off before."""
    (output,) = backward.graph.find_nodes(op="output")
    pairs = zip(metadata.input_info, output.args[0], strict=True)
    return all(found is not None or info.is_leaf or not info.requires_grad for info, found in pairs)


def without_gradients(program: GraphProgram) -> Call:
    """A function that runs a program."""

    def call(*arguments: Any) -> Sequence[Any]:
        return program([*arguments])

    return call


def with_gradients(
    forward: GraphProgram, compile_backward: Callable[[], GraphProgram], metadata: ViewAndMutationMeta
) -> Call:
    """A function that runs a program and remembers what the gradients need.

    Args:
        forward: Gives the results, then what is saved.
        compile_backward: Gives, of what is saved and the gradients of results, those of arguments.
        metadata: What AOTAutograd found out about the function.
    """
    num_results = len(metadata.output_info)
    smooth = [i for i, result in enumerate(metadata.output_info) if result.requires_grad_for_backward]
    constant = [i for i, result in enumerate(metadata.output_info) if not result.requires_grad]
    compiled: list[Program] = []

    def first_backward() -> Program:
        with torch.no_grad():
            program = torch._dynamo.disable(compile_backward)()
        compiled.append(program if program.is_whole else program.run_with_eager_parts)
        return compiled[0]

    class Compiled(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, *arguments: Any) -> Any:
            found = forward([*arguments])
            ctx.save_for_backward(*found[num_results:])
            ctx._materialize_non_diff_grads = False
            if constant:
                ctx.mark_non_differentiable(*(found[i] for i in constant if isinstance(found[i], torch.Tensor)))
            return tuple(found[:num_results])

        @staticmethod
        def backward(ctx: Any, *gradients: Any) -> Any:
            inputs = [*ctx.saved_tensors, *[gradients[i].resolve_conj().resolve_neg() for i in smooth]]
            program = compiled[0] if compiled else first_backward()
            if _is_grad_enabled():
                return _Final.apply(program, torch.empty(0, requires_grad=True), *inputs)
            return tuple(program(inputs))

    apply = super(torch.autograd.Function, Compiled).apply

    def call(*arguments: Any) -> Sequence[Any]:
        # What torch's own `apply` asks for beside this concerns arguments of functorch, whose graphs come without.
        results: Sequence[Any] = (Compiled.apply if _is_transforming() else apply)(*arguments)
        return results

    return call


class _Final(torch.autograd.Function):  # type: ignore[misc]
    """Gradients that have none themselves, where somebody asked for a graph of them."""

    @staticmethod
    def forward(ctx: Any, program: Program, _: Any, *inputs: Any) -> Any:
        return tuple(program([*inputs]))

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        raise RuntimeError("torch.compile with xlalite does not support double backward")


_PLAIN = (torch.Tensor, torch.nn.Parameter, torch._subclasses.FakeTensor)
