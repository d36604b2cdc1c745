"""Prints what compiled code still asks the evaluator for: how often, in how many programs, which operation and why.

`python tests/evaluator_calls.py [--where]` compiles every operation's records, the stored programs, random modules and
the benchmarks' workloads; `--where` names the programs, too.
"""

import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from benchmarks.run import workloads
from code_fingerprints import modules
from random_modules.differential import make_case

from xlalite.backends.base import CompileOptions, get_backend
from xlalite.hlo.errors import XlaliteError
from xlalite.hlo.types.decision import Decision

RANDOM_MODULES = 300
EMITTED = "llvm-before-optimizations"


def compilations() -> Iterator[tuple[str, Sequence[Decision]]]:
    """The name of each program, with what was decided about it."""
    options = CompileOptions(num_threads=2)
    named = [*modules(), *((f"random module {seed}", make_case(seed).module) for seed in range(RANDOM_MODULES))]
    for name, module in named:
        try:
            yield name, get_backend("cpu").compile_to(EMITTED, module, options).decisions
        except XlaliteError as error:
            print(f"{name}: {error}", file=sys.stderr)
    for workload in workloads():
        executable = workload.build().executable
        if executable is not None:
            yield workload.name, executable.decisions()


def main() -> None:
    calls: Counter[tuple[str, str]] = Counter()
    programs: dict[tuple[str, str], list[str]] = defaultdict(list)
    count = 0
    for name, decisions in compilations():
        count += 1
        found = Counter((str(d.numbers["opcode"]), d.reason) for d in decisions if d.leaves_native_code)
        calls += found
        for what in found:
            programs[what].append(name)
    print(f"{calls.total()} calls of the evaluator in {count} programs")
    for (opcode, reason), number in calls.most_common():
        print(f"{number:6} in {len(programs[opcode, reason]):4}  {opcode}: {reason}")
        if "--where" in sys.argv:
            print(*(f"{'':8}{name}" for name in programs[opcode, reason]), sep="\n")


if __name__ == "__main__":
    main()
