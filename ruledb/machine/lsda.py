"""
Language-specific data areas: where an unwinder may go on inside a function, and from which of its instructions.

Source: Itanium C++ ABI, "Exception Handling Tables"; GCC, `libgcc/unwind-pe.h` and `except.cc`.
"""

from dataclasses import dataclass

__all__ = ["CallSite", "call_sites"]


@dataclass(frozen=True, slots=True)
class CallSite:
    """Exceptions of the instructions in [start, end) go on at *pad*."""

    start: int
    end: int
    pad: int


_OMITTED, _ULEB = 0xFF, 0x01
_SIZES = {0x02: 2, 0x03: 4, 0x04: 8}
"""Encoding of a table's numbers → their bytes."""


def call_sites(table: bytes, start: int, end: int) -> tuple[CallSite, ...] | None:
    """
    The call sites with a landing pad of the function [start, end), by the area *table* (bytes behind its end do no harm).
    None where the area is not of the known form, or says something about code outside the function.
    """
    try:
        return _parsed(table, start, end)
    except IndexError:
        return None


def _parsed(table: bytes, start: int, end: int) -> tuple[CallSite, ...] | None:
    # A base for pads other than the function's start is for targets that this reader does not know.
    if table[0] != _OMITTED:
        return None
    position = 1
    is_typed, position = table[position] != _OMITTED, position + 1
    if is_typed:
        _, position = _number(table, position, _ULEB)
    encoding, position = table[position], position + 1
    length, position = _number(table, position, _ULEB)
    stop, previous = position + length, 0
    found: list[CallSite] = []
    while position < stop:
        first, position = _number(table, position, encoding)
        size, position = _number(table, position, encoding)
        pad, position = _number(table, position, encoding)
        _, position = _number(table, position, _ULEB)
        if first < previous or first + size > end - start or pad >= end - start:
            return None
        previous = first + size
        if pad:
            found.append(CallSite(start + first, start + first + size, start + pad))
    return tuple(found) if position == stop else None


def _number(table: bytes, position: int, encoding: int) -> tuple[int, int]:
    """The unsigned number at *position*, and the position behind it; an unknown encoding counts as cut short."""
    if encoding == _ULEB:
        value = shift = 0
        while shift < 70:
            byte = table[position]
            value |= (byte & 0x7F) << shift
            position, shift = position + 1, shift + 7
            if byte < 0x80:
                return value, position
        raise IndexError
    size = _SIZES.get(encoding, 0)
    if size == 0 or position + size > len(table):
        raise IndexError
    return int.from_bytes(table[position : position + size], "little"), position + size
