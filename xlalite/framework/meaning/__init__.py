"""What operations mean: declarations, lowering to HLO, running one by itself."""
