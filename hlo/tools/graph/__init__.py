"""Pictures of programs: what is drawn, where it stands, and the forms it is written in."""
