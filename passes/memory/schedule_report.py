"""The schedule as text: what runs when, and how many bytes of values are alive at each step."""

from __future__ import annotations

from collections import Counter

from xlalite.hlo.ir.module import HloModule
from xlalite.passes.analysis.buffer_values import BufferValues


def schedule_report(module: HloModule) -> str:
    """One line for each instruction of a scheduled module, in the order of execution.

    Bytes are those of the values that the program makes, parameters and constants not among them: from the step that
    writes a value to its last reader, or to the end for a result, and as if no two values shared memory.

    Raises:
        PassError: A computation is called from two places.
    """
    values = BufferValues(module)
    spans = values.schedule.spans
    begins: Counter[int] = Counter()
    ends: Counter[int] = Counter()
    root = module.entry_computation.root
    results = {values.of(root, index) for index, leaf in root.shape.leaves() if leaf.is_array}
    for value in values.values:
        if value.instruction.opcode not in ("parameter", "constant"):
            begins[value.start // 2] += value.size_bytes
            if value not in results:
                ends[-(-value.end() // 2)] += value.size_bytes
    lines = [f"Schedule: module {module.name}, {len(spans)} steps"]
    alive = most = peak_step = 0
    previous = -1
    computation = None
    for instruction, span in sorted(spans.items(), key=lambda item: item[1].end):
        for step in range(previous + 1, span.end + 1):
            alive += begins[step] - ends[step]
            if alive > most:
                most, peak_step = alive, step
        previous = span.end
        if instruction.parent is not computation:
            computation = instruction.parent
            name = computation.name if computation is not None else ""
            lines += ["", f"computation {name}:", f"{'step':>6} {'writes':>12} {'alive':>12}  instruction"]
        written = begins[span.end]
        lines.append(
            f"{span.end:6} {written:12} {alive:12}  %{instruction.name} = {instruction.shape.text()} "
            f"{instruction.opcode}({', '.join(f'%{operand.name}' for operand in instruction.operands)})"
        )
    lines += ["", f"Most alive at once: {most} bytes, at step {peak_step}"]
    return "\n".join(lines) + "\n"
