"""`python -m xlalite.tf1 SCRIPT|-m MODULE [arguments]`: runs a program whose imports say `tensorflow`, unchanged."""

import os
import runpy
import sys
from collections.abc import Sequence

from xlalite.compat.tensorflow import install


def main(words: Sequence[str] | None = None) -> int:
    """Runs the program; gives the exit code, unless the program itself ends the process."""
    given = list(sys.argv[1:] if words is None else words)
    if not given or given[0] in ("-h", "--help"):
        print("usage: python -m xlalite.tf1 SCRIPT|-m MODULE [arguments]", file=sys.stdout if given else sys.stderr)
        return 0 if given else 2
    install()
    if given[0] == "-m" and len(given) > 1:
        sys.argv[:] = given[1:]
        sys.path[0] = os.getcwd()
        runpy.run_module(given[1], run_name="__main__", alter_sys=True)
        return 0
    sys.argv[:] = given
    sys.path[0] = os.path.dirname(os.path.abspath(given[0]))
    runpy.run_path(given[0], run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.exit(main())
