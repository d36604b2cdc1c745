"""How programs in TensorFlow's manner start: `tf.app.run(main=main, argv=...)`."""

import sys
from collections.abc import Callable, Sequence
from typing import NoReturn

Main = Callable[[list[str]], int | str | None]


def run(main: Main | None = None, argv: Sequence[str] | None = None) -> NoReturn:
    """Calls `main(argv)` and leaves the process with what it returns; None is success.

    Args:
        main: The function; without it, the function `main` of the program that runs.
        argv: Its arguments, the program's name first; without them, those of the process.
    """
    start = main or sys.modules["__main__"].main
    sys.exit(start(list(sys.argv if argv is None else argv)))
