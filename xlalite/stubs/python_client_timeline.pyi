# Written by `python -m pytest tests/test_public_names.py --bless` from the tables of names.

from xlalite.client.timeline import Timeline as Timeline

