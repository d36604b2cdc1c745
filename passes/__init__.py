"""HLO-to-HLO passes, the pipeline that runs them, and the analyses they share. Knows no backend and no graph."""

if not __name__.startswith("xlalite."):
    raise ImportError(
        f"import xlalite.passes instead of {__name__}: under a second name every class of the room would exist twice"
    )
