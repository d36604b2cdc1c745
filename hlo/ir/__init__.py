"""What has identity: instructions, computations, modules; and what tells if two are equal."""
