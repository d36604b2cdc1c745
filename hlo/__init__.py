"""The IR: shapes, literals, operations, instructions, modules, their text and their meaning. Knows nothing else."""

if not __name__.startswith("xlalite."):
    raise ImportError(
        f"import xlalite.hlo instead of {__name__}: under a second name every class of the room would exist twice"
    )
