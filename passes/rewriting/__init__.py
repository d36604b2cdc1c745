"""What passes rewrite with."""
