"""Programs of many steps are divided into native functions of bounded size."""

import re

import numpy as np

from xlalite.backends.cpu.emission.emitted_module import ENTRY

STEPS = 1100


def test_many_steps_are_several_functions(compile_text, check) -> None:
    """Every other step depends on the one before; the last reads what the first function wrote."""
    program = "HloModule t\nENTRY e {\n x = f32[4,4] parameter(0)\n v0 = f32[4,4] transpose(x), dimensions={1,0}\n"
    program += "".join(
        f" s{i} = f32[4,4] add(v{i}, x)\n v{i + 1} = f32[4,4] transpose(s{i}), dimensions={{1,0}}\n"
        for i in range(STEPS // 2)
    )
    program += f" ROOT r = f32[4,4] subtract(v{STEPS // 2}, v0)\n}}"
    exe = check(program, np.arange(16, dtype=np.float32).reshape(4, 4))
    text = exe.as_text("llvm")
    functions = re.findall(r"^define \w+ i32 @(part[.\d]*)", text, re.MULTILINE)
    assert len(functions) >= 3
    entry = text[text.index(f"@{ENTRY}(") :]
    assert entry[: entry.index("\n}")].count("call ") == len(functions)
