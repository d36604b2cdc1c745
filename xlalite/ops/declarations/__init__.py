"""What each graph operation means: shapes, lowering, gradient."""
