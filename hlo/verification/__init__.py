"""What holds in every valid module."""
