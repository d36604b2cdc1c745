"""The native call: from Python's arguments to the entry of the code and back."""
