"""Broken HLO: whatever the text, the parser gives a module or a ParseError, and what it gives can be written and read.

Texts are mutations of valid modules, token by token, so that most of them get past the lexer; a second test is noise.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from xlalite.hlo.errors import ParseError
from xlalite.hlo.ir.fingerprint import fingerprint
from xlalite.hlo.spelling.lexer import SourceText
from xlalite.hlo.text import parse
from xlalite.hlo.verification.verifier import verify

HEADED = """HloModule m, is_scheduled=true, input_output_alias={ {}: (0, {}, may-alias) }
twice { a = f32[4] parameter(0)
  ROOT b = f32[4] add(a, a) }
ENTRY e (x: f32[4]) -> f32[4] { x = f32[4]{0} parameter(0), metadata={op_name="a" source_line=3}
  c = f32[] constant(1)
  b = f32[4] broadcast(c), dimensions={}
  ROOT r = f32[4] call(x), to_apply=twice, control-predecessors={c}, sharding={devices=[2]<=[2]} }
"""
ODD = (
    *("...", "{...}", "/*", "//", "nan", "1e400", "\0", "\ud800", "\xe9", "ROOT", "ENTRY", "HloModule", "x#0"),
    *("f32[]", "f32[-1]", "f32[<=4]", "f32[?]", "f32[0]", "f32[0,4]{1,0}", "f32[4611686018427387904]", "token[]"),
    *("c64[2]{0}", "pred[]", "s4[3]{0}", "f8e8m0fnu[2]{0}", "opaque[]", "b(f32[2])", "(f32[])", "()"),
    *("{0,0}", "{}", "{5}", "{-1}", "{1,0}", "constant", "parameter", "tuple", "add-start", "async-done"),
    *("-1", "0", "1", "-2147483648", "9223372036854775807", "18446744073709551615", "99999999999999999999"),
    *"{}()[],=:#/'\"",
)
# Python refuses to read more than 4300 digits.
NUMBERS = ("0", "1", "2", "3", "8", "63", "64", str(1 << 31), str(1 << 40), str(1 << 62), str(1 << 64), "9" * 5000)
# Lone surrogates, which no encoding has, and characters that steer a terminal.
LETTERS = ("\ud800", "\udcff", "\x1b[2J", "\x00", "\x07", "\x85", "\u202e", "\ufeff", "\U0001f600")


@pytest.fixture(scope="session")
def seeds(records: list[Any]) -> list[str]:
    """Valid modules: one for every operation, and one with all that a header and an instruction may carry."""
    return [*(record.text for record in records), HEADED]


@pytest.fixture(scope="session")
def seed_tokens(seeds: list[str]) -> list[list[str]]:
    return [SourceText(seed).tokens[:-3] for seed in seeds]


@pytest.fixture(scope="session")
def vocabulary(seed_tokens: list[list[str]]) -> list[str]:
    return sorted({token for tokens in seed_tokens for token in tokens})


def mutate(seed_tokens: list[list[str]], vocabulary: list[str], choose: Callable[[int], int]) -> str:
    """A text; `choose(n)` gives a number below n."""
    tokens = list(seed_tokens[choose(len(seed_tokens))])
    for _ in range(1 + choose(4)):
        if not tokens:
            break
        at = choose(len(tokens))
        match choose(8):
            case 0:
                del tokens[at]
            case 1:
                tokens.insert(at, ODD[choose(len(ODD))])
            case 2:
                tokens[at] = ODD[choose(len(ODD))]
            case 3:
                tokens[at] = vocabulary[choose(len(vocabulary))]
            case 4:
                other = choose(len(tokens))
                tokens[at], tokens[other] = tokens[other], tokens[at]
            case 5:
                number = NUMBERS[choose(len(NUMBERS))]
                places = [*re.finditer(r"\d+", tokens[at]), None]
                place = places[choose(len(places))]
                if place is not None:
                    tokens[at] = tokens[at][: place.start()] + number + tokens[at][place.end() :]
            case 6:
                letter, place = LETTERS[choose(len(LETTERS))], choose(len(tokens[at]) + 1)
                tokens[at] = tokens[at][:place] + letter + tokens[at][place:]
            case _:
                source = seed_tokens[choose(len(seed_tokens))]
                start = choose(len(source))
                tokens[at:at] = source[start : start + choose(8)]
    return " ".join(tokens)


def check(text: str | bytes) -> bool:
    """Reads the text; says whether it was a module."""
    try:
        module = parse(text)
    except ParseError as error:
        refusal = error
    else:
        refusal = None
    if refusal is not None:
        # It can be encoded, and steers no terminal.
        assert str(refusal).encode().decode().replace("\n", "").isprintable()
        return refusal.line < 1
    verify(module)
    for preset in ("default", "short_parsable"):
        written = module.to_string(preset)
        again = parse(written)
        assert again.to_string(preset) == written
    if "{...}" not in written:
        assert fingerprint(again) is not None
    return True


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_mutated_modules_parse_or_are_refused(
    data: st.DataObject, seed_tokens: list[list[str]], vocabulary: list[str]
) -> None:
    check(mutate(seed_tokens, vocabulary, lambda count: data.draw(st.integers(0, count - 1))))


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(noise=st.one_of(st.text(max_size=100), st.binary(max_size=100)))
def test_noise_is_refused(noise: str | bytes) -> None:
    check(noise)


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_damaged_bytes_parse_or_are_refused(data: st.DataObject, seeds: list[str]) -> None:
    raw = bytearray(data.draw(st.sampled_from(seeds)).encode())
    for position, value in data.draw(st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), max_size=4)):
        raw[position % len(raw)] = value
    check(bytes(raw))


@pytest.mark.slow
def test_many_mutated_modules_parse_or_are_refused(seed_tokens: list[list[str]], vocabulary: list[str]) -> None:
    chance = random.Random(20260101)
    accepted = sum(check(mutate(seed_tokens, vocabulary, chance.randrange)) for _ in range(100_000))
    assert accepted > 1000, "most mutations break the text, but some must not"


def test_the_seeds_themselves_are_modules(seeds: list[str]) -> None:
    assert all(check(seed) for seed in seeds)
