"""`xlalite extract`: an instruction with what it is computed from, as a module of its own."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from xlalite.cli.arguments import CommandParser, add_file
from xlalite.cli.reading import read_module
from xlalite.hlo.building.extraction import extract
from xlalite.hlo.tools.graph.network import find_instruction


def run(words: Sequence[str]) -> int:
    """Runs the command."""
    parser = CommandParser(
        "extract",
        "Prints an instruction with what it is computed from as a module of its own. What lies further away than "
        "--depth, or at a --boundary, becomes a parameter. Reads on by itself: xlalite extract f.hlo dot.5 --depth=2 "
        "| xlalite run -",
        "FILE NAME [options]",
    )
    add_file(parser)
    parser.add_argument("name", metavar="NAME", help="an instruction, or computation/instruction")
    parser.add_argument("--depth", type=_depth, metavar="N", help="operands to take along; 0 is the instruction alone")
    parser.add_argument("--boundary", default="", metavar="A,B", help="instructions that become parameters")
    parser.add_argument("-o", dest="output", default="-", metavar="OUT", help="write to a file")
    arguments, _ = parser.read(words)
    module = read_module(arguments.file)
    boundary = [find_instruction(module, name) for name in arguments.boundary.split(",") if name]
    part = extract(find_instruction(module, arguments.name), depth=arguments.depth, boundary=boundary)
    text = part.to_string("lossless")
    if arguments.output == "-":
        print(text, end="")
    else:
        Path(arguments.output).write_text(text, encoding="utf-8")
    return 0


def _depth(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"expected a number of edges, found {text!r}")
    return int(text)
