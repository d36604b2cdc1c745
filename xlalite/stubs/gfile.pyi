# Written by `python -m pytest tests/test_public_names.py --bless` from the tables of names.

from xlalite.files.gfile import (
    GFile as GFile, copy as _copy, exists as _exists, find as _find, isdir as _isdir, listdir as _listdir,
    makedirs as _makedirs, mkdir as _mkdir, remove as _remove, rename as _rename, rmtree as _rmtree, stat as _stat,
    walk as _walk
)

FastGFile = GFile
Open = GFile
Copy = _copy
Exists = _exists
Glob = _find
IsDirectory = _isdir
ListDirectory = _listdir
MakeDirs = _makedirs
MkDir = _mkdir
Remove = _remove
Rename = _rename
DeleteRecursively = _rmtree
Stat = _stat
Walk = _walk
