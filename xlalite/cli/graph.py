"""`xlalite graph`: a program, the surroundings of an instruction or what lies between two, as a picture."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from xlalite.cli.arguments import CommandParser, add_file, positive
from xlalite.cli.errors import UsageError
from xlalite.cli.reading import read_module
from xlalite.hlo.ir.computation import HloComputation
from xlalite.hlo.ir.instruction import HloInstruction
from xlalite.hlo.tools.graph.dot import graph_dot
from xlalite.hlo.tools.graph.network import between, find_instruction, neighbourhood
from xlalite.hlo.tools.graph.page import graph_page
from xlalite.hlo.tools.graph.svg import graph_svg

Draw = Callable[[HloComputation, Collection[HloInstruction] | None], str]

FORMS: dict[str, Draw] = {"svg": graph_svg, "html": graph_page, "dot": graph_dot}
"""What pictures are written as, by the end of the file's name."""

_EPILOG = """\
examples:
  xlalite graph f.hlo -o f.html                     all of it, boxes that open
  xlalite graph f.hlo dot.5 --radius=3 -o near.svg  what is near an instruction
  xlalite graph f.hlo --from=a --to=b -o ways.svg   all that lies between two
  xlalite opt f.hlo | xlalite graph - -o f.html     after the passes, fused
  xlalite graph f.hlo | dot -Tpdf -o f.pdf          through Graphviz
"""


def run(words: Sequence[str]) -> int:
    """Runs the command."""
    arguments, _ = _parser().read(words)
    form = _form(arguments.output)
    module = read_module(arguments.file)
    computation, shown, selected = module.entry_computation, None, ""
    if arguments.start or arguments.end:
        if not (arguments.start and arguments.end) or arguments.name:
            raise UsageError("--from and --to go together, without a NAME")
        first = find_instruction(module, arguments.start)
        shown = between(first, find_instruction(module, arguments.end))
        computation, selected = _home(first), first.name
    elif arguments.name:
        one = find_instruction(module, arguments.name)
        shown = neighbourhood(one, arguments.radius)
        computation, selected = _home(one), one.name
    text = graph_page(computation, shown, selected) if form == "html" else FORMS[form](computation, shown)
    if arguments.output == "-":
        print(text, end="")
    else:
        Path(arguments.output).write_text(text, encoding="utf-8")
    return 0


def _parser() -> CommandParser:
    parser = CommandParser(
        "graph",
        "Draws a module as SVG, as a page for a browser, or for Graphviz. With a NAME only what is near that "
        "instruction. Fusions, loops and calls are boxes; a large program is folded, and opens in the page.",
        "FILE [NAME] -o OUT.svg|OUT.html|OUT.dot [options]",
        _EPILOG,
    )
    add_file(parser)
    parser.add_argument("name", nargs="?", metavar="NAME", help="an instruction, or computation/instruction")
    parser.add_argument("-o", dest="output", default="-", metavar="OUT", help="the file; '-', the default, prints dot")
    parser.add_argument("--radius", type=positive, default=2, metavar="N", help="edges away from NAME (default: 2)")
    parser.add_argument("--from", dest="start", metavar="A", help="draw what lies on the paths from A ...")
    parser.add_argument("--to", dest="end", metavar="B", help="... to B")
    return parser


def _form(output: str) -> str:
    if output == "-":
        return "dot"
    suffix = Path(output).suffix.removeprefix(".").lower()
    if suffix not in FORMS:
        raise UsageError(f"-o {output}: expected a name that ends in .{', .'.join(FORMS)}")
    return suffix


def _home(one: HloInstruction) -> HloComputation:
    assert one.parent is not None, "it was found in a module"
    return one.parent
