"""Functions of an image: the ranges of its frame table, and sized symbols where it describes nothing."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from ruledb.machine.ehframe import frames
from ruledb.machine.elf import Image

__all__ = ["Function", "function_at", "functions"]


@dataclass(frozen=True, slots=True, order=True)
class Function:
    """
    A range of code, [start, end). *lsda* is the address of its language-specific data, 0 for none, -1 for an unknown one.
    *is_overlapping*: several descriptions of it contradict each other.
    """

    start: int
    end: int
    lsda: int = 0
    is_signal_frame: bool = False
    is_overlapping: bool = False

    @property
    def has_lsda(self) -> bool:
        """Whether an unwinder has more to do here than to go on to the caller."""
        return self.lsda != 0


def functions(image: Image) -> tuple[Function, ...]:
    """
    The functions of *image*, ascending and disjoint; linkage stubs are none. Descriptions that overlap without being equal
    become one function that says so.
    """
    address, table, is_bounded = image.eh_frame
    described: list[Function] = []
    if image.kind != "relocatable":  # there, the frame table's addresses are not filled in yet
        described = [Function(f.start, f.end, f.lsda, f.is_signal_frame) for f in frames(table, address, is_bounded)[0]]
    merged = _merge([f for f in described if _is_code(image, f)])
    named = {(s.address, s.address + s.size) for s in image.symbols if s.is_function and s.address and s.size}
    free = [f for start, end in sorted(named) if _is_free(f := Function(start, end), merged) and _is_code(image, f)]
    return tuple(sorted([*merged, *_merge(free)]))


def _is_code(image: Image, function: Function) -> bool:
    in_stubs = any(start < function.end and function.start < end for start, end in image.plt_ranges)
    return (
        not in_stubs
        and image.is_code(function.start)
        and len(image.read(function.start, function.end - function.start)) == (function.end - function.start)
    )


def _merge(found: list[Function]) -> list[Function]:
    merged: list[Function] = []
    for function in sorted(set(found)):
        last = merged[-1] if merged else None
        if last is None or function.start >= last.end:
            merged.append(function)
            continue
        is_same = (function.start, function.end) == (last.start, last.end)
        merged[-1] = Function(
            last.start,
            max(last.end, function.end),
            last.lsda if last.lsda == function.lsda else -1,
            last.is_signal_frame or function.is_signal_frame,
            last.is_overlapping or not is_same,
        )
    return merged


def _is_free(function: Function, taken: list[Function]) -> bool:
    index = bisect_right(taken, function.end - 1, key=lambda f: f.start)
    return index == 0 or taken[index - 1].end <= function.start


def function_at(found: Sequence[Function], address: int) -> Function | None:
    """The function of the ascending, disjoint *found* that holds *address*."""
    index = bisect_right(found, address, key=lambda f: f.start) - 1
    return found[index] if index >= 0 and address < found[index].end else None
