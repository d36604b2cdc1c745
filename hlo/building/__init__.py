"""How instructions are made."""
