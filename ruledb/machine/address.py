"""
What a register or an address holds, as far as a stretch of straight code tells: a constant plus multiples of unknowns.

Values are modulo 2**64. Unknown is what a register held before the stretch, what is loaded, and what instructions not
known here compute; the same unknown is the same value.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ruledb.machine.codec import Decoded
from ruledb.machine.instruction import Imm, Mem
from ruledb.machine.registers import RAX, Register, family_mask

__all__ = ["Before", "Load", "Low", "Made", "Sum", "Unknown", "address_of", "constant", "low_bits", "value_of"]

_WORD = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class Before:
    """What the register of *family* held before the stretch."""

    family: int


@dataclass(frozen=True, slots=True)
class Made:
    """What the instruction of index *position* put into the register of *family*."""

    position: int
    family: int


@dataclass(frozen=True, slots=True)
class Load:
    """*n_bytes* that the instruction of index *position* loads from *address*, extended with their sign or with zeros."""

    position: int
    address: "Sum"
    n_bytes: int
    is_signed: bool


@dataclass(frozen=True, slots=True)
class Low:
    """The lowest *n_bits* of *value*, extended with zeros."""

    value: "Sum"
    n_bits: int


Unknown = Before | Made | Load | Low


@dataclass(frozen=True, slots=True)
class Sum:
    """*constant* plus the unknowns times their factors, modulo 2**64."""

    constant: int = 0
    terms: tuple[tuple[Unknown, int], ...] = ()

    def __add__(self, other: "Sum") -> "Sum":
        factors: dict[Unknown, int] = {}
        for unknown, factor in (*self.terms, *other.terms):
            factors[unknown] = factors.get(unknown, 0) + factor & _WORD
        return Sum(self.constant + other.constant & _WORD, tuple((u, f) for u, f in factors.items() if f))

    def times(self, factor: int) -> "Sum":
        """The sum, *factor* times."""
        return Sum(self.constant * factor & _WORD, tuple((u, f * factor & _WORD) for u, f in self.terms if f * factor & _WORD))

    def put(self, unknown: "Unknown", value: int) -> "Sum":
        """The sum where *unknown* is *value*, also in the addresses of what is loaded."""
        total = Sum(self.constant)
        for part, factor in self.terms:
            known = constant(value) if part == unknown else Sum(terms=((part, 1),))
            if isinstance(part, Load):
                known = Sum(terms=((replace(part, address=part.address.put(unknown, value)), 1),))
            total += known.times(factor)
        return total

    @property
    def unknown(self) -> Unknown | None:
        """The only unknown, where there is one only, once, and no constant."""
        return self.terms[0][0] if self.constant == 0 and len(self.terms) == 1 and self.terms[0][1] == 1 else None


def constant(value: int) -> Sum:
    """The sum that is *value*."""
    return Sum(value & _WORD)


def low_bits(value: Sum, n_bits: int) -> Sum:
    """The lowest *n_bits* of *value*, extended with zeros."""
    match value.unknown:
        case Load(n_bytes=n_bytes, is_signed=False) if 8 * n_bytes <= n_bits:
            return value
        case Low(n_bits=known) if known <= n_bits:
            return value
        case _:
            return Sum(terms=((Low(value, n_bits), 1),))


def value_of(stretch: Sequence[Decoded], stop: int, register: Register) -> Sum:
    """What the whole 64 bits of *register* hold before the instruction of index *stop*."""
    mask = family_mask(register.family)
    position = next((i for i in reversed(range(stop)) if stretch[i].writes & mask), -1)
    if position < 0:
        return Sum(terms=((Before(register.family), 1),))
    return _made(stretch, position, register.family) or Sum(terms=((Made(position, register.family), 1),))


def address_of(stretch: Sequence[Decoded], position: int, operand: Mem) -> Sum | None:
    """The address of the memory *operand* of the instruction of index *position*; None where it is not the sum of its parts."""
    reference = stretch[position].reference
    if operand.segment or not isinstance(operand.displacement, int):
        return None
    total = constant(operand.displacement if reference is None else reference)
    for part, factor in ((operand.base, 1), (operand.index, operand.scale)):
        if part is not None and part.width != 64:
            return None
        if part is not None:
            total += value_of(stretch, position, part).times(factor)
    return total


def _made(stretch: Sequence[Decoded], position: int, family: int) -> Sum | None:
    """What the instruction of index *position* puts into the register of *family*, where that is known here."""
    instruction = stretch[position].instruction
    operands = instruction.operands
    if instruction.mnemonic == "cdqe" and family == RAX:
        return _extended(value_of(stretch, position, Register(RAX, 64)))
    if len(operands) != 2 or not isinstance(operands[0], Register) or operands[0].family != family:
        return None
    to = operands[0]
    match instruction.mnemonic, to.width, operands[1]:
        case "mov", 64, Register(width=64) as source:
            return value_of(stretch, position, source)
        case "mov", 64, Imm(int(value)):
            return constant(value)
        case "mov", 32, Imm(int(value)):
            return constant(value & 0xFFFFFFFF)
        case "mov", 64 | 32, Mem() as place:
            return _loaded(stretch, position, place, to.width // 8, is_signed=False)
        case "mov", 32, Register(width=32) as source:
            return low_bits(value_of(stretch, position, source), 32)
        case "movzx", 64 | 32, Register(width=width, high=False) as source:
            return low_bits(value_of(stretch, position, source), width)
        case "movsxd", 64, Mem() as place:
            return _loaded(stretch, position, place, 4, is_signed=True)
        case "movsxd", 64, Register(width=32) as source:
            return _extended(value_of(stretch, position, source))
        case "lea", 64, Mem() as place:
            return address_of(stretch, position, place)
        case "add", 64, Register(width=64) as source:
            return value_of(stretch, position, to) + value_of(stretch, position, source)
        case "add", 64, Imm(int(value)):
            return value_of(stretch, position, to) + constant(value)
        case "add", 64, Mem() as place:
            loaded = _loaded(stretch, position, place, 8, is_signed=False)
            return value_of(stretch, position, to) + loaded if loaded is not None else None
        case _:
            return None


def _loaded(stretch: Sequence[Decoded], position: int, operand: Mem, n_bytes: int, *, is_signed: bool) -> Sum | None:
    address = address_of(stretch, position, operand)
    return Sum(terms=((Load(position, address, n_bytes, is_signed), 1),)) if address is not None else None


def _extended(value: Sum) -> Sum | None:
    """*value* with its lower 32 bits extended by their sign, where it is a load of so many."""
    match value.unknown:
        case Load(position, address, 4, False):
            return Sum(terms=((Load(position, address, 4, True), 1),))
        case _:
            return None
