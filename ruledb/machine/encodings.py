"""
The encodings of a binary by number: what an instruction does is worked out once, however often it occurs.

Instructions that differ only in the *distance* to another address (of a branch, or of a rip-relative operand) are one
encoding: so a real binary has few, and those mean the same wherever they stand. What an encoding does is shared, in turn,
by all that differ in displacements only: a *form*.

Where the distance stands is guessed for all instructions at once, by opcode tables. The decoder has the last word: a guess
is only used where it agrees on the encoding with a distance of zero, and nothing but the distance differs from that one.
"""

from dataclasses import dataclass
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from ruledb.machine.codec import Decoded, Effects, Encoding, Flow, encoding_of
from ruledb.machine.registers import FLAG_SHIFT

__all__ = ["FLOWS", "Addresses", "Distances", "Encodings", "Indices", "Marks", "Masks", "Numbers", "Tables"]

Addresses = NDArray[np.uint64]
Masks = NDArray[np.uint64]
"""Register lanes of location masks: bit 4 * family + lane."""
Indices = NDArray[np.int64]
Marks = NDArray[np.bool_]
Numbers = NDArray[np.int32]
Distances = NDArray[np.int32]

FLOWS = {flow: number for number, flow in enumerate(Flow)}
"""The number that stands for a flow in arrays."""

_WORD = (1 << 64) - 1
_REFUTED = -1


@dataclass(frozen=True)
class Tables:
    """
    What encodings do. One element per encoding: *form*; *length* in bytes; *field*, the first byte of the distance, 0 for
    none; *other*, the target or the address of the operand for a distance of zero, relative to the instruction's own
    address, where it *has_target* or *has_reference*. The others have one element per form.
    """

    form: Numbers
    length: NDArray[np.uint8]
    field: NDArray[np.uint8]
    other: Addresses
    has_target: Marks
    has_reference: Marks
    flow: NDArray[np.uint8]
    reads: Masks
    kills: Masks
    reads_flags: NDArray[np.uint8]
    kills_flags: NDArray[np.uint8]
    touches_memory: Marks
    divides: Marks
    is_nop: Marks


_ROW = 16
"""Bytes by which an encoding is known: its own, at most 15, with zeros for the distance and behind; then its outline."""
_CHUNK = 1 << 15
"""Instructions treated together: few enough for the processor's cache."""
_SLOT_BITS = 18
_FACTORS = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F)
"""Odd factors that spread a row over the slots. Source: the golden ratio, and a prime of xxHash."""


class Encodings:
    """The encodings seen so far, by number. *codes* are their bytes, with zeros for the distance; *effects* go by form."""

    def __init__(self) -> None:
        self.codes: list[bytes] = []
        self.effects: list[Effects] = []
        self.form: list[int] = []
        self._forms: dict[int, int] = {}
        self._fields: list[int] = []
        self._targets: list[int | None] = []
        self._references: list[int | None] = []
        self._tables: Tables | None = None
        self._numbers: dict[bytes, int] = {}
        # A table in front of the dictionary: a hash of a row → the number of some row with that hash.
        self._slots = np.full(1 << _SLOT_BITS, -1, dtype=np.int32)
        self._rows = np.zeros((1, 2), dtype=np.uint64)  # the last one stands for no row
        self._n_asked = 0

    def read(self, code: bytes, lengths: NDArray[np.uint8]) -> tuple[Numbers, Distances]:
        """The encodings of the instructions of *code*, which have these *lengths* in bytes, and their distances, 0 where there is none."""
        starts = np.cumsum(lengths, dtype=np.int64) - lengths
        padded = np.frombuffer(code + bytes(_ROW), dtype=np.uint8)
        windows = np.lib.stride_tricks.sliding_window_view(padded, _ROW)
        numbers = np.empty(len(starts), dtype=np.int32)
        for low in range(0, len(starts), _CHUNK):
            part = slice(low, low + _CHUNK)
            numbers[part] = self._number(windows[starts[part]], lengths[part])
        field = self.tables.field[numbers]
        distances = np.zeros(len(starts), dtype=np.int32)
        for size, dtype in ((1, np.int8), (4, np.int32)):
            index = np.flatnonzero((field > 0) & ((field == lengths - 1) == (size == 1)))
            fields = np.lib.stride_tricks.sliding_window_view(padded, size)[starts[index] + field[index]]
            distances[index] = fields.view(dtype)[:, 0]
        return numbers, distances

    def decoded(self, number: int) -> Decoded:
        """An instruction of this encoding, at address 0, with a distance of zero."""
        return Decoded(0, self.codes[number], self.effects[self.form[number]], self._targets[number], self._references[number])

    def whole(self, number: int, distance: int) -> bytes:
        """The bytes of an instruction: those of its encoding with its distance."""
        code, field = self.codes[number], self._fields[number]
        if not field:
            return code
        size = _size(field, len(code))
        return code[:field] + distance.to_bytes(size, "little", signed=True) + code[field + size :]

    def _number(self, rows: NDArray[np.uint8], lengths: NDArray[np.uint8]) -> Numbers:
        """The numbers of the instructions whose bytes *rows* start with."""
        outline = lengths << 4 | _guessed_fields(rows, lengths)
        keys = rows.view(np.uint64) & _KEPT[outline]
        keys[:, 1] |= outline.astype(np.uint64) << np.uint64(56)
        slots = (keys[:, 0] * _FACTORS[0] + keys[:, 1] * _FACTORS[1]) >> np.uint64(64 - _SLOT_BITS)
        numbers: Numbers = self._slots[slots]
        missed = np.flatnonzero((self._rows[numbers] != keys).any(axis=1))
        if len(missed):
            numbers[missed] = self._look_up(keys[missed], rows[missed])
            self._slots[slots[missed]] = numbers[missed]
        return numbers

    def _look_up(self, keys: Masks, rows: NDArray[np.uint8]) -> list[int]:
        """The numbers by way of the dictionary, new ones for what is new."""
        n_known = len(self.codes)
        pairs = zip(_pieces(keys.tobytes()), _pieces(rows.tobytes()), strict=True)
        numbers = [number if (number := self._numbers.get(key, _REFUTED)) != _REFUTED else self._learn(key, row) for key, row in pairs]
        if len(self.codes) > n_known:
            learned = b"".join(key for key, number in islice(self._numbers.items(), self._n_asked, None) if number != _REFUTED)
            self._n_asked = len(self._numbers)
            self._rows = np.concatenate([self._rows[:-1], np.frombuffer(learned, dtype=np.uint64).reshape(-1, 2), self._rows[-1:]])
        return numbers

    def _learn(self, key: bytes, row: bytes) -> int:
        """The number of what is known by *key*, or, where the decoder knows better than the guess, by all of *row* without a field."""
        if key not in self._numbers:
            length, field = key[-1] >> 4, key[-1] & 15
            code = key[:length]
            encoding = encoding_of(code)
            if field and encoding.distance != (field, _size(field, length)):
                self._numbers[key] = _REFUTED
            else:
                self._numbers[key] = len(self.codes)
                self._append(code, field, encoding)
        number = self._numbers[key]
        if number != _REFUTED:
            return number
        length = key[-1] >> 4
        return self._learn(row[:length].ljust(_ROW - 1, b"\0") + bytes([length << 4]), row)

    def _append(self, code: bytes, field: int, encoding: Encoding) -> None:
        form = self._forms.setdefault(id(encoding.effects), len(self.effects))
        if form == len(self.effects):
            self.effects.append(encoding.effects)
        self.codes.append(code)
        self.form.append(form)
        self._fields.append(field)
        self._targets.append(encoding.target)
        self._references.append(encoding.reference)

    @property
    def tables(self) -> Tables:
        """What the encodings seen so far do, as arrays."""
        if self._tables is None or len(self._tables.form) != len(self.codes):
            self._tables = self._arrays()
        return self._tables

    def _arrays(self) -> Tables:
        effects = self.effects
        others = [r if t is None else t for t, r in zip(self._targets, self._references, strict=True)]
        return Tables(
            np.array(self.form, dtype=np.int32),
            np.array([len(code) for code in self.codes], dtype=np.uint8),
            np.array(self._fields, dtype=np.uint8),
            np.array([other or 0 for other in others], dtype=np.uint64),
            np.array([target is not None for target in self._targets], dtype=np.bool_),
            np.array([reference is not None for reference in self._references], dtype=np.bool_),
            np.array([FLOWS[e.flow] for e in effects], dtype=np.uint8),
            np.array([e.reads & _WORD for e in effects], dtype=np.uint64),
            np.array([e.kills & _WORD for e in effects], dtype=np.uint64),
            np.array([e.reads >> FLAG_SHIFT for e in effects], dtype=np.uint8),
            np.array([e.kills >> FLAG_SHIFT for e in effects], dtype=np.uint8),
            np.array([e.loads or e.stores for e in effects], dtype=np.bool_),
            np.array([e.divides for e in effects], dtype=np.bool_),
            np.array([e.is_nop for e in effects], dtype=np.bool_),
        )


def _pieces(rows: bytes) -> list[bytes]:
    return [rows[i : i + _ROW] for i in range(0, len(rows), _ROW)]


def _size(field: int, length: int) -> int:
    """Bytes of the distance at *field* in an instruction of *length*: all are of 4 bytes, or of the last one."""
    return 1 if field == length - 1 else 4


def _kept_bits() -> Masks:
    """By outline, the bits of a row that tell encodings apart: the instruction's own, without the distance."""
    kept = np.zeros((256, _ROW), dtype=np.uint8)
    for outline in range(256):
        length, field = outline >> 4, outline & 15
        kept[outline, :length] = 0xFF
        if field:
            kept[outline, field : field + _size(field, length)] = 0
    return kept.view(np.uint64)


_KEPT = _kept_bits()

_SHORT, _NEAR = 6, 7


def _guesses() -> NDArray[np.uint8]:
    """
    By the two bytes at an opcode's start: how far behind it the ModRM byte stands, if there is one; or `_SHORT` and `_NEAR`,
    for branches with a distance of one and four bytes at their end.

    Source: Intel 64 and IA-32 Architectures SDM, volume 2D, appendix A, "Opcode map".
    """
    one = np.zeros(256, dtype=np.uint8)
    with_operand = [row + column for row in range(0, 0x40, 8) for column in range(4)]
    one[with_operand] = 1
    one[[0x63, 0x69, 0x6B, *range(0x80, 0x90), 0xC0, 0xC1, 0xC6, 0xC7, *range(0xD0, 0xD4), *range(0xD8, 0xE0)]] = 1
    one[[0xF6, 0xF7, 0xFE, 0xFF]] = 1
    one[[0x62, 0xC4, 0xC5]] = 5, 4, 3  # EVEX and VEX: the opcode stands behind their own bytes
    one[[*range(0x70, 0x80), *range(0xE0, 0xE4), 0xEB]] = _SHORT
    one[[0xE8, 0xE9]] = _NEAR
    two = np.full(256, 2, dtype=np.uint8)
    two[[0x38, 0x3A]] = 3
    two[0x80:0x90] = _NEAR
    two[[0x05, 0x06, 0x07, 0x08, 0x09, 0x0B, 0x0E, *range(0x30, 0x38), 0x77, 0xA0, 0xA1, 0xA2, 0xA8, 0xA9, 0xAA, *range(0xC8, 0xD0)]] = 0
    guesses = np.tile(one, (256, 1))  # [second, first]
    guesses[:, 0x0F] = two
    return guesses.ravel()


_GUESSES = _guesses()
_IS_PREFIX, _IS_REX = np.zeros(256, dtype=np.uint8), np.zeros(256, dtype=np.uint8)
_IS_PREFIX[[0x2E, 0x3E, 0x66, 0xF2, 0xF3]] = 1
_IS_REX[0x40:0x50] = 1


def _guessed_fields(rows: NDArray[np.uint8], lengths: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Where in each instruction a distance seems to stand, 0 for nowhere."""
    data, first = rows.ravel(), np.arange(0, rows.size, _ROW, dtype=np.int32)
    at = first.copy()
    for is_prefix in (_IS_PREFIX, _IS_PREFIX, _IS_REX):
        at += is_prefix[data[at]]
    guess = _GUESSES[data[at] | data[at + 1].astype(np.uint16) << 8]
    at = np.minimum(at + guess, first + _ROW - 1)
    is_relative = (guess > 0) & (guess < _SHORT) & (data[at] & 0xC7 == 5)
    field = np.where(is_relative, at + 1 - first, 0)
    for kind, size in ((_SHORT, 1), (_NEAR, 4)):
        field = np.where(guess == kind, lengths.astype(np.int32) - size, field)
    last = np.where(guess == _SHORT, 1, 4)
    return np.where((field > 0) & (field + last <= lengths), field, 0).astype(np.uint8)
