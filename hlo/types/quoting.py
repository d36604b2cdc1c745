"""Quoted strings of HLO text: C escapes, bytes as UTF-8."""

from __future__ import annotations

import re

_TO_ESCAPE = re.compile(r"[^ -~]|[\"'\\]")
_ESCAPED = rb"(?s)\\(?:([0-7]{1,3})|[xX]([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))"
_TO_LETTER = {"\n": r"\n", "\r": r"\r", "\t": r"\t", '"': r"\"", "'": r"\'", "\\": r"\\"}
_FROM_LETTER = {
    b"n": b"\n",
    b"r": b"\r",
    b"t": b"\t",
    b"a": b"\a",
    b"b": b"\b",
    b"f": b"\f",
    b"v": b"\v",
    b"\\": b"\\",
    b"'": b"'",
    b'"': b'"',
    b"?": b"?",
}


def escape(text: str) -> str:
    r"""The text with quotes, backslashes and everything outside printable ASCII escaped, as octal UTF-8 bytes."""
    return _TO_ESCAPE.sub(_escape_one, text)


def quote(text: str) -> str:
    """The text escaped, in double quotes."""
    return f'"{escape(text)}"'


def unquote(quoted: str) -> str:
    """The text of a quoted string, without quotes and escapes.

    Raises:
        ValueError: There is an escape that C does not have.
    """
    inside = quoted[1:-1]
    if "\\" not in inside:
        return inside
    raw = re.sub(_ESCAPED, _unescape_one, _utf8(inside))
    return raw.decode("utf-8", "surrogateescape")


def _escape_one(match: re.Match[str]) -> str:
    character = match[0]
    letter = _TO_LETTER.get(character)
    if letter is not None:
        return letter
    return "".join(f"\\{byte:03o}" for byte in _utf8(character))


def _utf8(text: str) -> bytes:
    """The bytes that were read as the text, of other lone surrogates those that UTF-8 would give them."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")


def _unescape_one(match: re.Match[bytes]) -> bytes:
    octal, hexadecimal, short, long, letter = match.groups()
    if octal is not None:
        if int(octal, 8) > 255:
            raise ValueError(f"escape \\{octal.decode()} is not a byte")
        return bytes([int(octal, 8)])
    if hexadecimal is not None:
        return bytes([int(hexadecimal, 16)])
    if short is not None or long is not None:
        return chr(int(short or long, 16)).encode("utf-8")
    if letter not in _FROM_LETTER:
        raise ValueError(f"escape \\{letter.decode('utf-8', 'replace')} is not known")
    return _FROM_LETTER[letter]
