"""HLO written as StableHLO: an exporter into the records that the readers give, and their spelling as text."""
