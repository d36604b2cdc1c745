"""What each StableHLO operation is in HLO."""
