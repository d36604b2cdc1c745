"""Runs the modules of a range of seeds and prints those on which the backends differ; the exit code is 1 if any do."""

import faulthandler
import sys

from random_modules.differential import report


def main() -> int:
    faulthandler.enable()
    first, count = map(int, sys.argv[1:])
    wrong = 0
    for seed in range(first, first + count):
        print(seed, file=sys.stderr, flush=True)
        found = report(seed)
        if found:
            wrong += 1
            print(found, flush=True)
    return 1 if wrong else 0


sys.exit(main())
