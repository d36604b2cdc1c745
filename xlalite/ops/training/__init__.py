"""Variables, initialisers and optimizers."""
