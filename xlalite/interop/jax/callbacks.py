"""Python functions that jax's programs call: `pure_callback`, `io_callback`, `debug.print` and the like.

jax compiles them into calls whose meaning is in jaxlib; here they are custom calls of our own, by number. A function
lives as long as the compiled program that jax holds.
"""

from __future__ import annotations

import dataclasses
import importlib
import itertools
import re
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xlalite.hlo.errors import EvaluationError
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.op import Caller
from xlalite.hlo.surroundings.custom_calls import custom_call
from xlalite.hlo.types.literal import Token, Value

TARGET = "xlalite_python_callback"
_NUMBER = re.compile(r"\bnumber = (\d+)")
_numbers = itertools.count()


class _Callback:
    """A function that can be referred to weakly.

    Attributes:
        function: Takes arrays and gives a sequence of arrays.
    """

    __slots__ = ("__weakref__", "function")

    def __init__(self, function: Callable[..., Sequence[Any]]) -> None:
        self.function = function


_callbacks: weakref.WeakValueDictionary[int, _Callback] = weakref.WeakValueDictionary()


def register_callbacks(platform_name: str) -> None:
    """Gives jax's callbacks a lowering for the platform; programs for other platforms keep theirs."""
    jax_callback: Any = importlib.import_module("jax._src.callback")
    original = getattr(jax_callback, "emit_python_callback", None)
    if original is None:
        return

    def lower(ctx: Any, callback: Any, token: Any, operands: Any, avals: Any, results: Any, **options: Any) -> Any:
        if not is_ours(ctx, platform_name):
            return original(ctx, callback, token, operands, avals, results, **options)
        return emit(ctx, callback, token, operands, results, bool(options.get("has_side_effect")))

    jax_callback.emit_python_callback = lower
    public: Any = importlib.import_module("jax.interpreters.mlir")
    public.emit_python_callback = lower


def is_ours(ctx: Any, platform_name: str) -> bool:
    """Whether a program is compiled for this platform, when another one has the same name, too."""
    from jax._src import xla_bridge

    if tuple(ctx.module_context.platforms) != (platform_name,):
        return False
    return "xlalite" in str(xla_bridge.get_backend().platform_version)


def emit(ctx: Any, callback: Any, token: Any, operands: Any, results: Any, has_side_effect: bool) -> Any:
    """A call of a function of arrays, as rules of jax give it: values, token, and what must live as long."""
    from jax._src import core, ffi

    registered, number = _Callback(_checked(callback, results)), next(_numbers)
    _callbacks[number] = registered
    ctx.module_context.add_keepalive(registered)
    if token:
        operands = [token, *operands]
        ins, outs = [core.abstract_token, *ctx.avals_in], [core.abstract_token, *ctx.avals_out]
        ctx = dataclasses.replace(ctx, avals_in=ins, avals_out=outs)
    lowering = ffi.build_ffi_lowering_function(TARGET, has_side_effect=has_side_effect)
    values = list(lowering(ctx, *operands, number=np.uint64(number)).results)
    return values[1:] if token else values, values[0] if token else token, registered


def _checked(callback: Callable[..., Sequence[Any]], expected: Sequence[Any]) -> Callable[..., Sequence[Any]]:
    """The function, whose results must be as it was said."""
    from jax._src import dtypes

    def call(*arrays: Any) -> Sequence[Any]:
        found = tuple(dtypes.canonicalize_value(np.asarray(value)) for value in callback(*arrays))
        if len(found) != len(expected):
            raise RuntimeError(
                f"Mismatched number of outputs from callback. Expected: {len(expected)}, Actual: {len(found)}"
            )
        for number, (value, wanted) in enumerate(zip(found, expected, strict=True)):
            for what in ("shape", "dtype"):
                if getattr(value, what) != getattr(wanted, what):
                    raise RuntimeError(
                        f"Incorrect output {what} for return value #{number}: Expected: {getattr(wanted, what)}, "
                        f"Actual: {getattr(value, what)}"
                    )
        return found

    return call


@custom_call(TARGET)
def _python_callback(instruction: HloInstruction, operands: Sequence[Value], call: Caller) -> Value:
    match = _NUMBER.search(instruction.backend_config)
    callback = _callbacks.get(int(match[1])) if match else None
    if callback is None:
        raise EvaluationError(f"{instruction.name}: the Python function of this call is not in this process any more")
    tokens = [operand for operand in operands if isinstance(operand, Token)]
    results = (*tokens, *callback.function(*(operand for operand in operands if not isinstance(operand, Token))))
    return results if instruction.shape.is_tuple else results[0] if results else ()
