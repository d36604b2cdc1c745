"""What tools need and no pass: patterns, extraction, comparison, shrinking, the referee."""
