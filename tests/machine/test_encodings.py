"""Encodings by number: reading many instructions at once says what decoding each of them says."""

import random

import numpy as np
import pytest

from ruledb.machine import encodings as module
from ruledb.machine.codec import decode
from ruledb.machine.elf import load
from ruledb.machine.encodings import Encodings
from ruledb.machine.listing import joined

NOISE = random.Random(3).randbytes(60_000)
AWKWARD = bytes.fromhex(
    "e800000000 eb05 e9ffffffff 740a 0f8400000000 e2fb e3f0 66e81200"  # branches, short and near, and one by 16 bits
    "f2e801000000 3eff25010203 04 2e7503"  # behind prefixes
    "488d0511223344 8b0d00000080 c70511223344 55667788 48813d01000000 02000000 0fb60500000000 660f3a0f0501020304 07"
    "c5f96f0511223344 c4e2790005 11223344 62f17c481005 11223344"  # ahead of immediates, and with the vector prefixes
    "67488d0511223344 678b0510000000"  # relative to eip
    "b805000000 c705112233 e8112233"  # what only looks so, and what is cut short
)


def told(decoded):
    """What is to agree. An address relative to eip counts modulo 2**32, and wherever code is, it lies below that."""
    bits = 32 if b"\x67" in decoded.code[:4] else 64
    return (
        decoded.address,
        decoded.code,
        decoded.effects,
        decoded.target,
        None if decoded.reference is None else decoded.reference % 2**bits,
    )


def plain(code, start):
    """Each instruction decoded at its place."""
    return [told(d) for d in decode(code, start)]


def read(encodings, *regions):
    """All instructions of *regions* read at once."""
    listing = joined(encodings, regions)
    return [told(d) for d in listing.decoded(0, len(listing))]


@pytest.mark.parametrize("code", [NOISE, AWKWARD, b"", *(AWKWARD[:n] for n in range(1, len(AWKWARD)))])
def test_reading_at_once_is_decoding(code):
    """Bytes, effects, targets and operands' addresses are those of the decoder, also of noise and of what is cut short."""
    assert read(Encodings(), (0x1000, code), (1 << 40, code)) == plain(code, 0x1000) + plain(code, 1 << 40)


def test_programs_are_read_as_they_are_decoded(corpus):
    """So is a program, and once more with the encodings known."""
    image = load(corpus / "vm-O2")
    encodings = Encodings()
    for _ in range(2):
        for start, end in image.executable_ranges:
            code = image.read(start, end - start)
            assert read(encodings, (start, code)) == plain(code, start)


def test_distances_make_no_encodings():
    """Branches to different places and operands at different addresses share their encoding."""
    encodings = Encodings()
    near, short, operand = bytes.fromhex("e8"), bytes.fromhex("eb"), bytes.fromhex("488b05")
    code = b"".join(near + bytes([n, 0, 0, 0]) + short + bytes([n]) + operand + bytes([n, n, 0, 0]) for n in range(100))
    joined(encodings, [(0, code)])
    assert len(encodings.codes) == 3


def test_the_decoder_overrules_a_wrong_guess(monkeypatch):
    """If the opcode tables take an immediate for a distance, nothing is read wrongly."""
    right = module._GUESSES.copy()
    for wrong in (module._NEAR, module._SHORT, 1, 2):
        monkeypatch.setattr(module, "_GUESSES", np.where(right == 0, np.uint8(wrong), right))
        assert read(Encodings(), (0, NOISE[:5000])) == plain(NOISE[:5000], 0)


def test_equal_hashes_are_told_apart(monkeypatch):
    """Instructions that fall into the same slot keep their own numbers."""
    monkeypatch.setattr(module, "_FACTORS", (np.uint64(0), np.uint64(0)))
    assert read(Encodings(), (0, NOISE[:20_000])) == plain(NOISE[:20_000], 0)
