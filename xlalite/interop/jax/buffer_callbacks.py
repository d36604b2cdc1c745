"""Python functions that write into the results of a call themselves: jax's `buffer_callback`."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xlalite.interop.jax.callbacks import emit, is_ours


class Buffer(np.ndarray[Any, Any]):
    """An array as such a function gets it; what is given can only be read."""

    @property
    def writeable(self) -> bool:
        """Whether it is a result."""
        return self.flags.writeable


class ExecutionContext:
    """What such a function learns about the call."""

    @property
    def stage(self) -> Any:
        """That it is a run."""
        return importlib.import_module("jax._src.buffer_callback").ExecutionStage.EXECUTE

    @property
    def stream(self) -> int:
        """There is none on processors.

        Raises:
            JaxRuntimeError: Always.
        """
        from jax.errors import JaxRuntimeError

        raise JaxRuntimeError("UNIMPLEMENTED: XLA FFI GPU context is not available")


def register_buffer_callbacks(platform_name: str) -> None:
    """Gives them a lowering for the platform; programs for other platforms keep theirs."""
    try:
        module: Any = importlib.import_module("jax._src.buffer_callback")
        original, primitive = module._buffer_callback_lowering, module.buffer_callback_p
    except (ImportError, AttributeError):
        return

    def lower(ctx: Any, *operands: Any, callback: Any, in_tree: Any, out_tree: Any, **options: Any) -> Any:
        if not is_ours(ctx, platform_name):
            return original(ctx, *operands, callback=callback, in_tree=in_tree, out_tree=out_tree, **options)
        shared = {result: operand for operand, result in options["input_output_aliases"]}
        call = _writing(callback, in_tree, out_tree, ctx.avals_out, shared)
        return emit(ctx, call, None, operands, ctx.avals_out, options["has_side_effect"])[0]

    module.mlir.register_lowering(primitive, lower, platform=platform_name)


def _writing(
    callback: Callable[..., object], in_tree: Any, out_tree: Any, results: Sequence[Any], shared: dict[int, int]
) -> Callable[..., Sequence[Any]]:
    """A function that gives what another one writes; some results begin as the operand of a number, in its place."""

    def call(*operands: Any) -> Sequence[Any]:
        found = [
            np.array(operands[shared[number]]) if number in shared else np.zeros(result.shape, result.dtype)
            for number, result in enumerate(results)
        ]
        given = [np.asarray(operand).view() for operand in operands]
        for result, operand in shared.items():
            given[operand] = found[result].view()
        for array in given:
            array.flags.writeable = False
        positional, named = in_tree.unflatten([array.view(Buffer) for array in given])
        written = out_tree.unflatten([array.view(Buffer) for array in found])
        if callback(ExecutionContext(), written, *positional, **named) is not None:
            raise ValueError("buffer_callback callback must not return any values.")
        return found

    return call
