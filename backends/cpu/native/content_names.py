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


class ContentNames:
    """The names that the modules of one program define, module by module."""

    __slots__ = ("_digests", "_names", "_own")

    def __init__(self) -> None:
        """No module yet."""
        self._names: dict[str, str] = {}
        self._own: dict[str, dict[str, str]] = {}
        self._digests: set[str] = set()

    def learn(self, text: str) -> None:
        """Takes the names that a module defines, if it is a `RENAMED_MODULE`."""
        if not text.startswith(RENAMED_MODULE) or text in self._own:
            return
        defined = _DEFINED.findall(text)
        own = {name: f"@own.{number}" for number, (_, name) in enumerate(defined)}
        digest = blake2b(_renamed(text, own).encode(), digest_size=12).hexdigest()
        if digest in self._digests:  # both would define the same
            return
        self._digests.add(digest)
        self._names |= {name: f"@kept.{digest}.{number}" for number, (hidden, name) in enumerate(defined) if hidden}
        self._own[text] = own

    def renamed(self, text: str) -> str:
        """A module under the names of what it defines, and of what it calls of modules that are known."""
        return text if text.startswith(SHARED_MODULE) else _renamed(text, {**self._own.get(text, {}), **self._names})


def named_by_content(texts: Sequence[str], names: ContentNames | None = None) -> list[str]:
    """Modules of one program; the names that a `RENAMED_MODULE` defines are those that its text alone decides.

    What such a module calls of another one has a part in its names by the name that the program has for it. Of some
    modules the names may be known already.
    """
    names = names or ContentNames()
    for text in texts:
        names.learn(text)
    return [names.renamed(text) for text in texts]


def _renamed(text: str, names: Mapping[str, str]) -> str:
    return _SYMBOL.sub(lambda found: names.get(found[0], found[0]), text)
