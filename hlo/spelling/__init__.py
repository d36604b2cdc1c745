"""One value as text, both ways."""
