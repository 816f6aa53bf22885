"""One line of the table of forms: what it says, in the manual's vocabulary, and that it does not contradict itself."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass

from ruledb.semantics.terms import Effect

__all__ = ["FLAG_LETTERS", "Form", "Slot", "line"]

FLAG_LETTERS = {"O": "OF", "S": "SF", "Z": "ZF", "A": "AF", "P": "PF", "C": "CF"}


@dataclass(frozen=True, slots=True)
class Slot:
    """
    One operand of a form.

    Kinds: ``r`` a register and ``m`` memory of the form's width, ``r8`` ``m8`` … of that width, ``imm`` an immediate seen at the
    form's width, ``imm8`` its low 8 bits, ``cl``, ``mem`` the address of lea, ``label`` the target of a jump. Implicit: ``acc`` and
    ``data``, rax and rdx at the form's width; ``half``, rax at half of it; ``al``, ``ax``; ``sp`` and ``bp``, all of rsp and rbp;
    ``top``, ``below`` and ``frame``, memory at rsp, below rsp, and at rbp; ``1``, the number.
    """

    kinds: tuple[str, ...]
    reads: bool
    writes: bool


@dataclass(frozen=True, slots=True)
class Form:
    """One line of the table; flags by their names, *needs* is the feature that the processor must have."""

    mnemonic: str
    explicit: tuple[Slot, ...]
    implicit: tuple[Slot, ...]
    widths: tuple[int, ...]
    semantics: Callable[..., Effect]
    reads: tuple[str, ...]
    writes: frozenset[str]
    undefined: frozenset[str]
    needs: str = ""

    @property
    def slots(self) -> tuple[Slot, ...]:
        """All operands, implicit ones last."""
        return self.explicit + self.implicit


_EXPLICIT = {"r", "r8", "r16", "r32", "m", "m8", "m16", "m32", "imm", "imm8", "cl", "mem", "label"}
_IMPLICIT = {"acc", "data", "half", "al", "ax", "sp", "bp", "top", "below", "frame", "1"}
_CONSTANT = {"imm", "imm8", "mem", "label", "1"}
_ACCESS = {"r": (True, False), "w": (False, True), "rw": (True, True), "-": (False, False)}


def _slots(text: str, allowed: set[str]) -> tuple[Slot, ...]:
    slots = []
    for word in filter(None, (w.strip() for w in text.split(","))):
        access, _, kinds = word.partition(" ")
        slot = Slot(tuple(kinds.split("|")), *_ACCESS[access])
        if not set(slot.kinds) <= allowed:
            raise ValueError(f"operand {word!r}: kinds {sorted(set(slot.kinds) - allowed)}, expected some of {sorted(allowed)}")
        if slot.writes and set(slot.kinds) & _CONSTANT:
            raise ValueError(f"operand {word!r}: cannot be written")
        slots.append(slot)
    return tuple(slots)


def line(
    mnemonic: str,
    operands: str,
    widths: tuple[int, ...],
    semantics: Callable[..., Effect],
    *,
    implicit: str = "",
    reads: str = "",
    writes: str = "",
    undefined: str = "",
    needs: str = "",
) -> Form:
    """
    The form that a line of the table describes.

    Raises:
        ValueError: The parts of the line contradict each other.

    """
    explicit, hidden = _slots(operands, _EXPLICIT), _slots(implicit, _IMPLICIT)
    if not set(undefined) <= set(writes):
        raise ValueError(f"{mnemonic}: flags {undefined!r} undefined but only {writes!r} written")
    if not widths or not set(widths) <= {8, 16, 32, 64}:
        raise ValueError(f"{mnemonic}: widths {widths}, expected some of 8, 16, 32, 64")
    n_arguments = sum(s.reads for s in explicit + hidden) + len(reads)
    parameters = tuple(inspect.signature(semantics).parameters.values())[1:]
    is_variadic = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    if not is_variadic and len(parameters) != n_arguments:
        raise ValueError(f"{mnemonic} {operands}: {semantics.__name__} takes {len(parameters)} terms, the line gives {n_arguments}")
    named = tuple(FLAG_LETTERS[letter] for letter in reads)
    written, open_ = (frozenset(FLAG_LETTERS[f] for f in fs) for fs in (writes, undefined))
    return Form(mnemonic, explicit, hidden, widths, semantics, named, written, open_, needs)
