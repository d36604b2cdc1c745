"""Names after contents: modules that programs share define the same names in all of them.

A kernel is called after the instruction that it computes, which people read in LLVM IR and assembly. What is kept of
it has to be found again where another instruction gives it its name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from xlalite.backends.cpu.native.object_code import RENAMED_MODULE, SHARED_MODULE
from xlalite.hlo.digest import blake2b

_SYMBOL = re.compile(r'@(?:"[^"]*"|[\w.$-]+)')
_DEFINED = re.compile(
    r'^(?:define (hidden )?[^@\n]*)?(@(?:"[^"]*"|[\w.$-]+))(?:\(| = private | = internal )', re.MULTILINE
)


def named_by_content(texts: Sequence[str]) -> list[str]:
    """Modules of one program; the names that a `RENAMED_MODULE` defines are those that its text alone decides.

    What such a module calls of another one has a part in its names by the name that the program has for it.
    """
    names: dict[str, str] = {}
    local: dict[str, dict[str, str]] = {}
    digests: set[str] = set()
    for text in texts:
        if text.startswith(RENAMED_MODULE):
            defined = _DEFINED.findall(text)
            own = {name: f"@own.{number}" for number, (_, name) in enumerate(defined)}
            digest = blake2b(_renamed(text, own).encode(), digest_size=12).hexdigest()
            if digest in digests:  # both would define the same
                continue
            digests.add(digest)
            names |= {name: f"@kept.{digest}.{number}" for number, (hidden, name) in enumerate(defined) if hidden}
            local[text] = own
    return [
        text if text.startswith(SHARED_MODULE) else _renamed(text, {**local.get(text, {}), **names}) for text in texts
    ]


def _renamed(text: str, names: Mapping[str, str]) -> str:
    return _SYMBOL.sub(lambda found: names.get(found[0], found[0]), text)
