"""Takes sizes that are known only at run time out of a module, by leaving what has them to the evaluator."""

from __future__ import annotations

from typing import ClassVar

from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.records import dataclass
from xlalite.passes.core.base import HloPass


@dataclass(frozen=True, slots=True)
class RunTimeSizes(HloPass):
    """Outlines instructions with run-time sizes into custom calls that hold them as HLO text.

    All further passes and all kernels then see arrays of known sizes only; the call is evaluated. A group of
    instructions that hand such arrays to each other becomes one call, together with what lies between them. A size that
    is asked for and known becomes a constant.

    An entry with such parameters or results gets them at their largest sizes, padded; behind the parameters, and behind
    the result in a tuple, follow their sizes, as `hlo.run_time_sizes.bounded_leaves` says. Nothing is donated to it.
    """

    name: ClassVar[str] = "run-time-sizes"

    def run(self, module: HloModule) -> bool:
        """Outlines in every computation; says whether there was anything."""
        if not any(one.shape.is_dynamic or one.opcode == "get-dimension-size" for one in module.instructions()):
            return False
        # Few programs have such sizes.
        from xlalite.passes.normalization.run_time_size_calls import outline_run_time_sizes

        return outline_run_time_sizes(module, self.name)
