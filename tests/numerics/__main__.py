"""Tries functions and writes docs/numerics.md: `python -m numerics [--types f32,c64] [function ...]`."""

import argparse

from numerics.sweep import whole_sweep
from numerics.table import ORDER, TYPES, Row, write_rows


def main() -> None:
    parser = argparse.ArgumentParser(prog="numerics", description=__doc__)
    parser.add_argument("functions", nargs="*")
    parser.add_argument("--types", default=",".join(dtype.value for dtype in TYPES))
    options = parser.parse_args()
    chosen = options.types.split(",")
    for name, dtype in ORDER:
        if dtype.value in chosen and (not options.functions or name in options.functions):
            row = Row.of(whole_sweep(name, dtype))
            print(row.text(), flush=True)
            write_rows([row])


main()
