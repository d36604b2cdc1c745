"""What users hold in their hands: sessions, their configuration, and timelines of what they ran."""
