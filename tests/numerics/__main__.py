"""Tries functions and writes docs/numerics.md: `python -m numerics [--types f32,c64] [--points 1e8] [function ...]`."""

import argparse

from numerics.sweep import whole_sweep
from numerics.table import ORDER, TYPES, Row, write_rows


def main() -> None:
    parser = argparse.ArgumentParser(prog="numerics", description=__doc__)
    parser.add_argument("functions", nargs="*")
    parser.add_argument("--types", default=",".join(dtype.value for dtype in TYPES))
    parser.add_argument("--points", type=float, default=1e8, help="how many, where not all numbers are tried")
    options = parser.parse_args()
    chosen = options.types.split(",")
    for name, dtype in ORDER:
        if dtype.value in chosen and (not options.functions or name in options.functions):
            row = Row.of(whole_sweep(name, dtype, int(options.points)))
            print(row.text(), flush=True)
            write_rows([row])


main()
