"""Element generators: what one element of each operation is made of."""
