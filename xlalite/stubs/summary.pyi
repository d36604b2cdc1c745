# Written by `python -m pytest tests/test_public_names.py --bless` from the tables of names.

from xlalite.files.events import FileWriter as FileWriter, FileWriterCache as FileWriterCache
from xlalite.messages.classes import Event as Event, SessionLog as SessionLog, Summary as Summary
from xlalite.ops.training.summary import (
    audio as audio, get_summary_description as get_summary_description, histogram as histogram, image as image,
    merge as merge, merge_all as merge_all, scalar as scalar, text as text
)

