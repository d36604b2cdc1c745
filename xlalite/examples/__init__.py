"""Programs that show xlalite at work; each runs with `python -m xlalite.examples.NAME`."""
