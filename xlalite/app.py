"""How programs in TensorFlow's manner start: `tf.app.run(main=main, argv=...)`; and their flags, `tf.app.flags`."""

import sys
from collections.abc import Callable, Sequence
from typing import NoReturn

from xlalite import flags as flags

Main = Callable[[list[str]], int | str | None]


def run(main: Main | None = None, argv: Sequence[str] | None = None) -> NoReturn:
    """Reads the program's flags, calls `main(argv)` and leaves the process with what it returns; None is success.

    Args:
        main: The function; without it, the function `main` of the program that runs.
        argv: The command line, the program's name first; without it, that of the process. What is a flag that the
            program defines is taken out.
    """
    start = main or sys.modules["__main__"].main
    sys.exit(start(flags.FLAGS(list(sys.argv if argv is None else argv), known_only=True)))
