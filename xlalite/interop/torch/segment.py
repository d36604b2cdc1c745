"""Part of a graph as an executable that takes and gives torch's tensors, whose memory it reads and writes in place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch._inductor import config

from xlalite.backends.base import CompileOptions, get_backend
from xlalite.backends.cpu.executable import CpuExecutable
from xlalite.client.compilation import compile_options
from xlalite.flags import flags_from_environment
from xlalite.hlo.ir.module import HloModule
from xlalite.interop.torch.memory_order import MemoryOrder

_data_ptr = torch.Tensor.data_ptr
_contiguous = torch.Tensor.contiguous
_is_contiguous = torch.Tensor.is_contiguous
_new = torch._C._dynamo.guards._empty_strided_cpu


class Segment:
    """A compiled module.

    Attributes:
        executable: The module, to be looked at.
    """

    def __init__(
        self,
        module: HloModule,
        inputs: Sequence[MemoryOrder],
        outputs: Sequence[tuple[MemoryOrder, torch.dtype]],
        refusals: Sequence[tuple[type[Exception], str]] = (),
    ) -> None:
        """Compiles a module.

        Args:
            module: What is compiled; it gives a tuple.
            inputs: How the tensors that it takes should lie in memory.
            outputs: How those that it gives do, and their types.
            refusals: What a call raises where one of the last results of the module is true, which it does not give.
        """
        executable = get_backend("cpu").compile(module, _options())
        assert isinstance(executable, CpuExecutable), "the backend cpu makes these"
        self.executable = executable
        self._inputs = tuple(inputs)
        self._strided = not all(order.is_row_major for order in inputs)
        self._outputs = [(order.sizes, order.strides, dtype) for order, dtype in outputs]
        self._outputs += [((), (), torch.bool)] * len(refusals)
        self._refusals = refusals
        self._run = executable.call.function_of_addresses()

    def __call__(self, tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """The results for tensors of the types and sizes that it was compiled for, however they lie in memory.

        Raises:
            RuntimeError, IndexError: An operation raises it in torch, too.
        """
        if self._strided:
            tensors = [*map(_arranged, tensors, self._inputs)]
        elif not all(map(_is_contiguous, tensors)):
            tensors = [*map(_contiguous, tensors)]
        results = [_new(sizes, strides, dtype) for sizes, strides, dtype in self._outputs]
        self._run(*map(_data_ptr, tensors), *map(_data_ptr, results))
        if self._refusals:
            flags = results[-len(self._refusals) :]
            del results[-len(self._refusals) :]
            for error, message in (said for said, flag in zip(self._refusals, flags, strict=True) if flag.item()):
                raise error(message)
        return results


def _options() -> CompileOptions:
    """What the flags say; narrow floats are rounded where they are stored, unless inductor is to do as eager does."""
    options = compile_options(flags_from_environment(), torch.get_num_threads())
    return replace(options, debug=replace(options.debug, allow_excess_precision=not config.emulate_precision_casts))


def _arranged(tensor: torch.Tensor, order: MemoryOrder) -> torch.Tensor:
    """A tensor, copied if it does not lie as the module expects it."""
    if tensor.stride() == order.strides or order.describes(tensor.shape, tensor.stride()):
        return tensor
    return torch.empty_strided(order.sizes, order.strides, dtype=tensor.dtype).copy_(tensor)
