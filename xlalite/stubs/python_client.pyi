# Written by `python -m pytest tests/test_public_names.py --bless` from the tables of names.

from xlalite.stubs import python_client_timeline as _python_client_timeline

timeline = _python_client_timeline
