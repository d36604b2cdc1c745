"""Special functions as compositions of elementary ones."""
