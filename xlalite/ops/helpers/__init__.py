"""What declarations and functions are made with."""
