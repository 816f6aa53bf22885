"""
Where indirect jumps go: by tables of jumps, as compilers make them for `switch`, or by pointers.

What a jump goes to is worked out from the straight code ahead of it (`ruledb.machine.address`), in one of these ways:

| the jump goes to | it is |
| --- | --- |
| B + the signed 32 bits at T + 4 i | a relative table at T; B and T are constants, mostly the same |
| the 64 bits at T + 8 i | an absolute table at the constant T |
| the 64 bits at any other place | a pointer |

The size of a table is not told. It is read as far as its entries lead to instructions: too many of them make liveness more
cautious, too few would make it wrong. A comparison that bounds the index is only a check (a table with fewer entries than it
allows is not understood), and for absolute tables the licence to end where another table starts. A table must hold a target
within the jump's own function: tables of functions may hold entries that lead elsewhere, and end nobody knows where.

A pointer is, too, what the caller hands over, and what was made further ahead where the frame is given back before the jump: it
leaves the function. Pointers lead to what is known to be entered anyway, since a pointer to code stands in data, in relocations or in an
instruction; there all of them are found. So their jumps hide no entries, though all is live at them.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum, auto

import numpy as np

from ruledb.machine.address import Before, Load, Low, Sum, Unknown, address_of, low_bits, value_of
from ruledb.machine.codec import Decoded
from ruledb.machine.elf import Image
from ruledb.machine.instruction import Imm, Mem
from ruledb.machine.listing import Addresses, Listing, find
from ruledb.machine.registers import RBP, RSP, Register, family_mask

__all__ = ["Entries", "Jump", "Step", "Table", "Way", "entries_of", "jump_of", "next_table"]


@dataclass(frozen=True, slots=True)
class Step:
    """An instruction of a stretch of code that led to a jump. *is_taken*: the stretch goes on at its target."""

    decoded: Decoded
    is_taken: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """
    A table of jumps at *address*, of *entry_bytes* each; relative entries count from *base*. *bound*: a comparison says
    that the index is below; 0 where none does.
    """

    address: int
    base: int
    entry_bytes: int
    bound: int

    @property
    def is_relative(self) -> bool:
        """Whether entries are distances."""
        return self.entry_bytes == _RELATIVE


class Jump(Enum):
    """What an indirect jump without a table goes by."""

    POINTER = auto()
    UNKNOWN = auto()


@dataclass(frozen=True, slots=True)
class Way:
    """
    The stretch of code that led to a jump. *from_start*: it is all that the function has run. *base_of*: by a register's
    family, the only constant that the function ever puts there, if there is one.
    """

    steps: Sequence[Step]
    from_start: bool
    base_of: Callable[[int], int | None]


_RELATIVE, _ABSOLUTE = 4, 8
_STACK = family_mask(RSP)


def jump_of(way: Way) -> Table | Jump:
    """What the indirect jump at the end of *way* goes by."""
    code = [step.decoded for step in way.steps]
    last = len(code) - 1
    (operand,) = code[last].instruction.operands
    value: Sum | None = None
    if isinstance(operand, Register) and operand.width == 64:
        value = value_of(code, last, operand)
    elif isinstance(operand, Mem) and operand.width == 64 and (address := address_of(code, last, operand)) is not None:
        value = Sum(terms=((Load(last, address, _ABSOLUTE, is_signed=False), 1),))
    if value is None:
        return Jump.UNKNOWN
    for unknown, _ in value.terms:
        if isinstance(unknown, Before) and len(value.terms) > 1 and (base := way.base_of(unknown.family)) is not None:
            value = value.put(unknown, base)
    match value:
        case Sum(base, ((Load(_, Sum(table, ((index, 4),)), 4, True), 1),)):
            return Table(table, base, _RELATIVE, _bound(way.steps, index))
        case Sum(0, ((Load(_, Sum(table, ((index, 8),)), 8, False), 1),)) if table:
            return Table(table, 0, _ABSOLUTE, _bound(way.steps, index))
        case Sum(0, ((Load(_, _, 8, False), 1),)):
            return Jump.POINTER
        case Sum(0, ((Before(), 1),)) if way.from_start or _leaves(code):
            return Jump.POINTER
        case _:
            return Jump.UNKNOWN


def _leaves(code: Sequence[Decoded]) -> bool:
    """Whether the last of what *code* does to the stack pointer is to give back the frame, as ahead of a call in the place of a return."""
    changes = [d for d in code if d.writes & _STACK]
    if not changes:
        return False
    last = changes[-1].instruction
    match last.mnemonic, last.operands:
        case ("pop", (Register(),)) | ("leave", ()):
            return True
        case "add", (_, Imm(int(value))):
            return value > 0
        case "lea", (_, Mem(base=Register(family=family))):
            return family == RBP
        case _:
            return False


_BELOW = {("ja", False): 1, ("jae", False): 0, ("jbe", True): 1, ("jb", True): 0}
"""Conditional jumps, and whether they are taken, behind which the left side of a comparison is below the right one plus so much."""


def _bound(stretch: Sequence[Step], index: Unknown) -> int:
    """What a comparison on the way says the *index* is below; 0 where none does."""
    code = [step.decoded for step in stretch]
    for at, step in enumerate(stretch):
        mnemonic = step.decoded.instruction.mnemonic
        more = _BELOW.get((mnemonic, step.is_taken))
        if more is None or at == 0:
            continue
        match code[at - 1].instruction.mnemonic, code[at - 1].instruction.operands:
            case "cmp", (compared, Imm(int(limit))) if limit >= 0 and _is_same(code, at - 1, compared, index):
                return limit + more
            case _:
                pass
    return 0


def _is_same(code: Sequence[Decoded], position: int, compared: object, index: Unknown) -> bool:
    """Whether what is *compared* at *position* is the *index* or its lowest bits."""
    match compared, index:
        case Mem() as place, Load(at, address, n_bytes, False):
            is_kept = not any(d.stores for d in code[position:at])
            return is_kept and 8 * n_bytes == place.width and address_of(code, position, place) == address
        case Register(width=width, high=False), _ if width >= 32 or (isinstance(index, Low) and index.n_bits <= width):
            # What is compared with 32 bits bounds an index of 64 if the upper ones are clear, as compilers know.
            return low_bits(value_of(code, position, compared), width) == low_bits(Sum(terms=((index, 1),)), width)
        case _:
            return False


_MOST_ENTRIES = 1 << 14
"""More than any compiler puts into a table."""
_FIRST_LOOK = 32


@dataclass(frozen=True)
class Entries:
    """The addresses that a table leads to, in its order, with repetitions; *stop*: where a word behind it would, that is no entry."""

    targets: Addresses
    stop: Addresses

    @property
    def all(self) -> Addresses:
        """Both."""
        return np.concatenate([self.targets, self.stop])


def entries_of(image: Image, listing: Listing, table: Table, end: int | None = None) -> Entries | None:
    """
    The entries of *table*: up to the first one that leads to no instruction, or up to the address *end*. None where there
    are more than any table has.
    """
    most = _MOST_ENTRIES if end is None else min((end - table.address) // table.entry_bytes, _MOST_ENTRIES)
    for count in (min(_FIRST_LOOK, most), most):
        targets = _targets(image, table, count)
        is_start = find(listing.address, targets)[1]
        if not is_start.all():
            n = int(np.argmin(is_start))
            return Entries(targets[:n], targets[n : n + 1])
    return Entries(targets, targets[:0]) if end is not None and most < _MOST_ENTRIES else None


def _targets(image: Image, table: Table, count: int) -> Addresses:
    if not table.is_relative and image.is_position_independent:
        places = range(table.address, table.address + count * table.entry_bytes, table.entry_bytes)
        return np.array([image.pointers.get(place, 0) for place in places], dtype=np.uint64)
    data = image.read(table.address, count * table.entry_bytes).ljust(count * table.entry_bytes, b"\0")
    words = np.frombuffer(data, dtype="<i4" if table.is_relative else "<i8")
    found: Addresses = words.astype(np.uint64) + np.uint64(table.base)
    return found


def next_table(table: Table, tables: Iterable[Table]) -> int | None:
    """Where the next one of the absolute *tables* starts that leaves *table* as many entries as its bound allows; None for nowhere."""
    if table.is_relative or not table.bound:
        return None
    least = table.address + table.bound * table.entry_bytes
    return min((t.address for t in tables if not t.is_relative and t.address >= least), default=None)
