"""What the shape rules of several families share."""
