"""What executes an HLO module: the interpreter and the CPU compiler. Knows no graph and no session."""

if not __name__.startswith("xlalite."):
    raise ImportError(
        f"import xlalite.backends instead of {__name__}: under a second name every class of the room would exist twice"
    )
