"""What passes are and how they run."""
