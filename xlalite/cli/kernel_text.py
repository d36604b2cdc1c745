"""The code of one kernel, cut out of the LLVM IR or the assembly of a whole module, behind the HLO that it computes."""

from __future__ import annotations

import re
from collections.abc import Iterator

from xlalite.cli.errors import UsageError
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.text import PrintOptions, print_instruction
from xlalite.hlo.wording import did_you_mean

_LLVM = re.compile(r'^define [^\n]*?@"?kernel\.([^"(]+)"?\(.*?^}$\n', re.MULTILINE | re.DOTALL)
_ASSEMBLY = re.compile(r'^"?kernel\.([^":\n]+)"?:.*?^\.Lfunc_end\d+:$\n', re.MULTILINE | re.DOTALL)


def kernel_text(text: str, name: str, module: HloModule) -> str:
    """The function of the kernel that an instruction names; the instructions of it stand before, as comments.

    Args:
        text: LLVM IR or assembly.
        name: The instruction.
        module: The program that the code was made of.

    Raises:
        UsageError: The text has no such function.
    """
    functions = {found[1]: found[0] for pattern in (_LLVM, _ASSEMBLY) for found in pattern.finditer(text)}
    if name not in functions:
        every = f"there are {', '.join(functions)}" if functions else "--stage=llvm and --stage=asm have kernels"
        raise UsageError(f"--kernel: there is no kernel {name!r}{did_you_mean(name, functions, every)}")
    sign = ";" if functions[name].startswith("define") else "#"
    return "".join(f"{sign} {line}\n" for line in _instructions(name, module)) + functions[name]


def _instructions(name: str, module: HloModule) -> Iterator[str]:
    """The instruction, and behind a fusion what it holds."""
    fusions = [one for one in module.instructions() if one.opcode == "fusion"]
    fused = {called for fusion in fusions for called in fusion.called_computations}
    plain = PrintOptions(metadata=False, backend_config=False)
    for one in module.instructions():
        if one.name == name and one.parent not in fused:
            yield print_instruction(one, plain)
            for called in one.called_computations if one in fusions else ():
                yield from (f"  {print_instruction(inside, plain)}" for inside in called.instructions)
