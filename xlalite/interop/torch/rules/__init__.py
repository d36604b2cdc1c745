"""What each operation of ATen is in HLO: a rule each, in a file for each family."""
