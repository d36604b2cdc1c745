"""The code of one kernel, cut out of the LLVM IR or the assembly of a whole module."""

from __future__ import annotations

import re

from xlalite.cli.errors import UsageError
from xlalite.hlo.wording import did_you_mean

_LLVM = re.compile(r'^define [^\n]*?@"?kernel\.([^"(]+)"?\(.*?^}$\n', re.MULTILINE | re.DOTALL)
_ASSEMBLY = re.compile(r'^"?kernel\.([^":\n]+)"?:.*?^\.Lfunc_end\d+:$\n', re.MULTILINE | re.DOTALL)


def kernel_text(text: str, name: str) -> str:
    """The function of the kernel that an instruction names.

    Raises:
        UsageError: The text has no such function.
    """
    functions = {found[1]: found[0] for pattern in (_LLVM, _ASSEMBLY) for found in pattern.finditer(text)}
    if name not in functions:
        every = f"there are {', '.join(functions)}" if functions else "--stage=llvm and --stage=asm have kernels"
        raise UsageError(f"--kernel: there is no kernel {name!r}{did_you_mean(name, functions, every)}")
    return functions[name]
