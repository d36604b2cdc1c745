# Written by `python -m pytest tests/test_public_names.py --bless` from the tables of names.

from xlalite.files.gfile import (
    GFile as GFile, copy as copy, exists as exists, find as _find, isdir as isdir, listdir as listdir,
    makedirs as makedirs, mkdir as mkdir, remove as remove, rename as rename, rmtree as rmtree, stat as stat,
    walk as walk
)

glob = _find
