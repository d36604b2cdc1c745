"""Passes that bring any valid module into the form that the others expect."""
