"""StableHLO text as generic operations."""
