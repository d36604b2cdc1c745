"""`xlalite stats`: what a module is made of, what it costs, and where most of that is."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence

from xlalite.cli.arguments import CommandParser, add_file, positive
from xlalite.cli.cache import shown_bytes
from xlalite.cli.reading import read_module
from xlalite.cli.wrapping import print_lines
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.ir.module import HloModule
from xlalite.hlo.tools.statistics import collect_statistics
from xlalite.passes.analysis.cost_analysis import CostAnalysis, cost_analysis

Rows = list[tuple[HloInstruction, float]]


def run(words: Sequence[str]) -> int:
    """Runs the command."""
    parser = CommandParser(
        "stats",
        "Says what a module is made of: operations by number, bytes, depth, users; how much arithmetic and memory "
        "traffic a call is; and which instructions of the entry are most of it, with all that they call.",
        "FILE [options]",
    )
    add_file(parser)
    parser.add_argument("--top", type=positive, default=10, metavar="N", help="instructions to list (default: 10)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments, _ = parser.read(words)
    module = read_module(arguments.file)
    found, cost, tops = collect_statistics(module), cost_analysis(module).as_dict(), _tops(module, arguments.top)
    if arguments.json:
        named = {name: [(one.name, amount) for one, amount in rows] for name, rows in tops.items()}
        fields = {field.name: getattr(found, field.name) for field in dataclasses.fields(found)}
        print(json.dumps({**fields, "opcodes": dict(found.opcodes), "cost": dict(cost), "top": named}))
        return 0
    print_lines([str(found)])
    print(
        f"one call: {cost['flops']:,.0f} flops, {cost['transcendentals']:,.0f} transcendentals, "
        f"{shown_bytes(cost['bytes accessed'])} read and written"
    )
    for name, rows in tops.items():
        print(f"most {name}:")
        for one, amount in rows:
            shown = shown_bytes(amount) if name == "bytes" else f"{amount:,.0f}"
            print_lines([f"  {shown:>15}  {one.name} = {one.shape.text()} {one.opcode}"], hang=19)
    return 0


def _tops(module: HloModule, count: int) -> dict[str, Rows]:
    """The instructions of the entry that do most arithmetic, and that move most bytes, the greatest first."""
    analysis = CostAnalysis()
    costs = [(one, analysis.of_instruction(one)) for one in module.entry_computation.instructions]
    flops: Rows = [(one, cost.flops + cost.transcendentals) for one, cost in costs]
    moved: Rows = [(one, cost.bytes_accessed) for one, cost in costs]

    def top(rows: Rows) -> Rows:
        return sorted((row for row in rows if row[1]), key=lambda row: -row[1])[:count]

    return {"arithmetic": top(flops), "bytes": top(moved)}
