"""When instructions run, and where their results lie."""
