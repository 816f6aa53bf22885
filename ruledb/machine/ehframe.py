"""
The frame table `.eh_frame`: which ranges are functions, and which of them need an unwinder's care.

Source: Linux Standard Base, "Exception Frames"; DWARF 4, 7.6 (LEB128).
"""

from dataclasses import dataclass

__all__ = ["Frame", "frames"]


@dataclass(frozen=True, slots=True)
class Frame:
    """One described range of code: [start, end). *lsda* is the address of its language-specific data, 0 for none, -1 for an unknown one."""

    start: int
    end: int
    lsda: int
    is_signal_frame: bool


@dataclass(frozen=True, slots=True)
class _Common:
    """What the entries of one CIE share: pointer encodings (255: no such pointer) and marks."""

    pointer: int
    lsda: int
    has_augmentation: bool
    is_signal_frame: bool


class _DamagedError(Exception):
    """The bytes do not follow the format."""


_SIZES = {0x0: (8, False), 0x2: (2, False), 0x3: (4, False), 0x4: (8, False), 0xA: (2, True), 0xB: (4, True), 0xC: (8, True)}
"""Low half of a pointer encoding → (bytes, whether signed)."""
_PC_RELATIVE, _ABSENT = 0x10, 0xFF
_MASK = (1 << 64) - 1


def frames(table: bytes, address: int, is_bounded: bool = True) -> tuple[tuple[Frame, ...], bool]:
    """
    The ranges that the frame table at *address* describes, in its order, and whether some of it was damaged (those
    entries are left out). Without *is_bounded*, a zero length ends the table.
    """
    commons: dict[int, _Common | None] = {}
    found: list[Frame] = []
    is_damaged, position = False, 0
    while position + 4 <= len(table):
        start = position + 4
        length = int.from_bytes(table[position:start], "little")
        if length == 0:
            if not is_bounded:
                break
            position = start
            continue
        if length == 0xFFFFFFFF:
            start, length = position + 12, int.from_bytes(table[position + 4 : position + 12], "little")
        if length < 4 or start + length > len(table):
            return tuple(found), True
        try:
            distance = int.from_bytes(table[start : start + 4], "little")
            if distance:
                frame = _frame(
                    table[position : start + length], start - position, address + position, _common(table, start - distance, commons)
                )
                found.extend([frame] if frame.end > frame.start else [])
        except (_DamagedError, IndexError):
            is_damaged = True
        position = start + length
    return tuple(found), is_damaged


def _common(table: bytes, position: int, known: dict[int, _Common | None]) -> _Common:
    if position not in known:
        try:
            known[position] = _parse_common(table, position)
        except (_DamagedError, IndexError):
            known[position] = None
    common = known[position]
    if common is None:
        raise _DamagedError
    return common


def _parse_common(table: bytes, position: int) -> _Common:
    if position < 0:
        raise _DamagedError
    start = position + 4
    if table[position:start] == b"\xff\xff\xff\xff":
        start = position + 12
    length = int.from_bytes(table[start - (8 if start > position + 4 else 4) : start], "little")
    entry = table[: start + length]
    if entry[start : start + 4] != b"\0\0\0\0" or entry[start + 4] not in (1, 3):
        raise _DamagedError
    version, end = entry[start + 4], entry.find(b"\0", start + 5)
    augmentation, position = entry[start + 5 : end], end + 1
    for _ in range(2 if version == 1 else 3):  # code alignment, data alignment, and the return register where it is a LEB128
        _, position = _uleb(entry, position)
    position += version == 1
    if augmentation[:1] not in (b"", b"z"):
        raise _DamagedError
    if augmentation:
        _, position = _uleb(entry, position)
    pointer, lsda = 0, _ABSENT
    for letter in augmentation[1:].decode("latin-1"):
        match letter:
            case "R":
                pointer, position = entry[position], position + 1
            case "L":
                lsda, position = entry[position], position + 1
            case "P":
                position = _pointer(entry, position + 1, entry[position], 0)[1]
            case "S" | "B":
                pass
            case _:
                raise _DamagedError
    return _Common(pointer, lsda, bool(augmentation), b"S" in augmentation)


def _frame(entry: bytes, start: int, address: int, common: _Common) -> Frame:
    low, position = _pointer(entry, start + 4, common.pointer, address)
    size, position = _pointer(entry, position, common.pointer & 0x0F, address)
    lsda = 0
    if common.has_augmentation and common.lsda != _ABSENT:
        _, position = _uleb(entry, position)
        # A null pointer is written as zero, whatever it would be relative to.
        if _pointer(entry, position, common.lsda & 0x0F, address)[0]:
            # The pointer may be one to a pointer that the loader fills.
            lsda = -1 if common.lsda & 0x80 else _pointer(entry, position, common.lsda, address)[0]
    if low + size > _MASK:
        raise _DamagedError
    return Frame(low, low + size, lsda, common.is_signal_frame)


def _pointer(entry: bytes, position: int, encoding: int, address: int) -> tuple[int, int]:
    """The pointer at *position* and the position behind it. *address* is where *entry*'s first byte stands."""
    size, is_signed = _SIZES.get(encoding & 0x0F, (0, False))
    if size == 0 or position + size > len(entry) or encoding & 0x60:
        raise _DamagedError
    value = int.from_bytes(entry[position : position + size], "little", signed=is_signed)
    if encoding & 0x70 == _PC_RELATIVE:
        value += address + position
    return value & _MASK, position + size


def _uleb(entry: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while shift < 70:
        byte = entry[position]
        value |= (byte & 0x7F) << shift
        position, shift = position + 1, shift + 7
        if byte < 0x80:
            return value, position
    raise _DamagedError
