"""
Windows with memory as windows without: each place that is accessed is a *cell*, a register of its own.

So one search serves both. A rip-relative address, which `lea` computes, is a constant there, and a closing jump sets a bit of a
register of its own if it is taken. Two places are one cell where
their addresses are the same sum (`addresses`); else they count as apart, which may be wrong: what is found here is a candidate,
and the prover knows that anything may alias. A candidate is written back with the addresses of the window, wherever registers
still hold what they need.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

from ruledb.machine.canonical import TARGET, Canonical, canonicalise
from ruledb.machine.constant import Constant, Expression, Symbol, symbols_in
from ruledb.machine.instruction import Imm, Instruction, Label, Mem, Operand, constants_of, registers_of
from ruledb.machine.registers import ALL_FLAGS, N_LANES, N_VIRTUAL, RSP, VIRTUAL, Register, lane_mask
from ruledb.search.addresses import Sum, Values, as_operand
from ruledb.semantics.forms import UnmodelledForm, features
from ruledb.semantics.symbolic import reads_and_writes

__all__ = ["Cell", "Celled", "accessed", "celled"]

_LOCKS = "xchg"
"""With memory it locks the bus: no candidate may have it."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A place: its address, the widest access in bits, operands (without width) that address it, and whether the window writes it."""

    address: Sum
    width: int
    ways: tuple[Mem, ...]
    is_written: bool


@dataclass(frozen=True, slots=True)
class Celled:
    """
    A window over registers and cells.

    Attributes:
        canonical: Its canonical form; *families* and *constants* name those of the window with memory.
        cells: By the canonical family that stands for each.
        relative: The window's symbols that are rip-relative addresses.
        taken: The canonical family that tells whether the closing jump is taken; None where there is no jump.
        accesses: What the window loads and stores, in order: whether it is a store, and its bits.

    """

    canonical: Canonical
    cells: Mapping[int, Cell]
    relative: frozenset[Constant] = frozenset()
    taken: int | None = None
    accesses: tuple[tuple[bool, int], ...] = ()

    def live(self, live: int) -> int:
        """The mask *live* over the window's families, over those here; cells that are written are live, as far as they reach."""
        mask = live & (ALL_FLAGS | ((1 << (N_LANES * VIRTUAL)) - 1))
        for k, family in enumerate(self.canonical.families):
            cell = self.cells.get(VIRTUAL + k)
            if VIRTUAL + k == self.taken:
                mask |= lane_mask(Register(VIRTUAL + k, 8))
            elif cell is None:
                mask |= (live >> (N_LANES * family) & 0b1111) << (N_LANES * (VIRTUAL + k))
            elif cell.is_written:
                mask |= lane_mask(Register(VIRTUAL + k, cell.width))
        return mask

    def back(self, candidate: Sequence[Instruction]) -> Iterator[tuple[Instruction, ...]]:
        """The sequences with memory that *candidate*, over registers and cells, may stand for; none where it cannot."""
        if self.taken is not None:
            if not candidate or (jump := self._as_jump(candidate[-1])) is None or any(map(self._tells, candidate[:-1])):
                return
            yield from ((*body, jump) for body in self._bodies(candidate[:-1]))
        else:
            yield from self._bodies(candidate)

    def _tells(self, instruction: Instruction) -> bool:
        return any(r.family == self.taken for o in instruction.operands for r in registers_of(o))

    def _as_jump(self, instruction: Instruction) -> Instruction | None:
        """The jump that *instruction* stands for."""
        is_set = instruction.mnemonic.startswith("set") and self._tells(instruction)
        return Instruction("j" + instruction.mnemonic.removeprefix("set"), (TARGET,)) if is_set else None

    def _bodies(self, candidate: Sequence[Instruction]) -> Iterator[tuple[Instruction, ...]]:
        choices = [tuple(self._written(i)) for i in candidate]
        for chosen in product(*choices):
            if _is_part(_accesses(chosen), self.accesses) and self._is_right(candidate, chosen):
                yield chosen

    def _written(self, instruction: Instruction) -> Iterator[Instruction]:
        """*instruction* with every operand that addresses its cell."""
        named = [r for o in instruction.operands for r in registers_of(o) if r.family in self.cells]
        operands = tuple(self._original(o) for o in instruction.operands)
        if any(symbols_in(c) & self._relative_symbols for c in constants_of([Instruction("", operands)])):
            if (made := _as_lea(instruction.mnemonic, operands)) is not None:
                yield made
            return
        if not named:
            yield Instruction(instruction.mnemonic, operands)
            return
        (at,) = [n for n, o in enumerate(instruction.operands) if o == named[0]][:1] or (-1,)
        has_memory = any(isinstance(o, Mem) for o in instruction.operands)
        cell = self.cells[named[0].family]
        if len(named) > 1 or at < 0 or has_memory or named[0].high or named[0].width > cell.width or instruction.mnemonic == _LOCKS:
            return
        for way in cell.ways:
            changed = (*operands[:at], replace(way, width=named[0].width), *operands[at + 1 :])
            made = Instruction(instruction.mnemonic, changed)
            if _is_modelled(made):
                yield made

    @property
    def _relative_symbols(self) -> frozenset[int]:
        return frozenset().union(*(symbols_in(c) for c in self.relative))

    def _original(self, operand: Operand) -> Operand:
        def register(r: Register) -> Register:
            return Register(self.canonical.families[r.family - VIRTUAL], r.width, r.high) if r.is_virtual else r

        match operand:
            case Register():
                return register(operand)
            case Imm(value):
                return Imm(self._constant(value))
            case Mem(base, index):
                new = [None if r is None else register(r) for r in (base, index)]
                return replace(operand, base=new[0], index=new[1], displacement=self._constant(operand.displacement))
        return operand

    def _constant(self, constant: Constant) -> Constant:
        match constant:
            case Symbol(index):
                return self.canonical.constants[index]
            case Expression(name, args):
                return Expression(name, tuple(self._constant(a) for a in args))
        return constant

    def _is_right(self, candidate: Sequence[Instruction], chosen: Sequence[Instruction]) -> bool:
        """Whether each access of *chosen* is to the place that *candidate* means."""
        values = Values()
        for meant, instruction in zip(candidate, chosen, strict=True):
            for one, other in zip(meant.operands, instruction.operands, strict=True):
                is_cell = isinstance(one, Register) and one.family in self.cells
                if is_cell and isinstance(other, Mem) and values.address(other) != self.cells[one.family].address:  # type: ignore[union-attr]
                    return False
            values.step(instruction)
        return True


def celled(instructions: Sequence[Instruction]) -> Celled | None:
    """
    The canonical window *instructions* over registers and cells; None where it cannot be written so: it accesses memory without
    naming it, or a place at several widths in a way that registers do not have.
    """
    places: dict[Sum, list[tuple[Mem, bool]]] = {}
    addresses = accessed(instructions)
    body = instructions[:-1] if instructions and _is_jump(instructions[-1]) else instructions
    for instruction, address in zip(body, addresses, strict=False):
        mem = _memory(instruction)
        if (mem is not None and address is None) or (mem is None and features(instruction) and not _is_relative(instruction)):
            return None
        if mem is not None and address is not None:
            places.setdefault(address, []).append((mem, _writes_memory(instruction)))
    first = 1 + max([VIRTUAL - 1, *(r.family for i in instructions for o in i.operands for r in registers_of(o))])
    if first + len(places) >= VIRTUAL + N_VIRTUAL:
        return None
    names = {address: first + n for n, address in enumerate(places)}
    cells = {names[address]: _cell(address, seen) for address, seen in places.items()}
    if any(_is_mixed(cells[names[a]], seen) for a, seen in places.items()):
        return None
    replaced = [_on_cell(i, names[a]) if a is not None else _as_move(i) for i, a in zip(body, addresses, strict=False)]
    taken = first + len(places)
    if len(body) < len(instructions):
        replaced.append(Instruction("set" + instructions[-1].mnemonic[1:], (Register(taken, 8),)))
    if any(not _is_modelled(i) or features(i) for i in replaced):
        return None
    canonical = canonicalise(replaced)
    if canonical is None:
        return None
    relative = frozenset(o.displacement for i in instructions for o in i.operands if isinstance(o, Mem) and o.rip)
    named = {f: VIRTUAL + k for k, f in enumerate(canonical.families)}
    return Celled(canonical, {named[f]: cell for f, cell in cells.items()}, relative, named.get(taken), _accesses(instructions))


def accessed(instructions: Sequence[Instruction]) -> list[Sum | None]:
    """The address that each of *instructions* accesses by an operand; None where there is none, or it is no sum."""
    found: list[Sum | None] = []
    values = Values()
    for instruction in instructions:
        mem = _memory(instruction)
        found.append(values.address(mem) if mem is not None else None)
        values.step(instruction)
    return found


def _memory(instruction: Instruction) -> Mem | None:
    """The operand by which *instruction* accesses memory; of one that does so otherwise, none."""
    found = features(instruction)
    operands = [o for o in instruction.operands if isinstance(o, Mem) and o.width]
    named = {r.family for o in instruction.operands if not isinstance(o, Mem) for r in registers_of(o)}
    return operands[0] if found <= {"memory", "rip"} and "memory" in found and operands and RSP not in named else None


def _writes_memory(instruction: Instruction) -> bool:
    """Whether the first operand of *instruction*, which is memory, is written."""
    if not isinstance(instruction.operands[0], Mem):
        return False
    return bool(reads_and_writes(_on_cell(instruction, _PLACE))[1] & lane_mask(Register(_PLACE, 8)))


def _cell(address: Sum, seen: Sequence[tuple[Mem, bool]]) -> Cell:
    plain = as_operand(address)
    ways = dict.fromkeys([*([plain] if plain is not None else []), *(replace(mem, width=0) for mem, _ in seen)])
    return Cell(address, max(mem.width for mem, _ in seen), tuple(ways), any(written for _, written in seen))


def _is_mixed(cell: Cell, seen: Sequence[tuple[Mem, bool]]) -> bool:
    """Whether a store of 32 bits is to a cell of 64: it leaves the upper half, as no register does."""
    return cell.width == 64 and any(written and mem.width == 32 for mem, written in seen)


def _on_cell(instruction: Instruction, family: int) -> Instruction:
    operands = tuple(Register(family, o.width) if isinstance(o, Mem) and o.width else o for o in instruction.operands)
    return Instruction(instruction.mnemonic, operands)


_PLACE = VIRTUAL + N_VIRTUAL - 1
"""A family to stand for an operand in memory where one instruction is looked at."""


def _accesses(instructions: Sequence[Instruction]) -> tuple[tuple[bool, int], ...]:
    """Loads and stores by operands, in order: whether each is a store, and its bits."""
    found: list[tuple[bool, int]] = []
    for instruction in instructions:
        for mem in (o for o in instruction.operands if isinstance(o, Mem) and o.width):
            reads, writes, _ = reads_and_writes(_on_cell(instruction, _PLACE))
            place = lane_mask(Register(_PLACE, 8))
            found += [(is_store, mem.width) for is_store, mask in ((False, reads), (True, writes)) if mask & place]
    return tuple(found)


def _is_part(some: Sequence[tuple[bool, int]], all_of: Sequence[tuple[bool, int]]) -> bool:
    """Whether *some* are among *all_of* in this order: no policy admits other accesses, or another order."""
    left = iter(all_of)
    return all(access in left for access in some)


def _is_jump(instruction: Instruction) -> bool:
    return any(isinstance(o, Label) for o in instruction.operands)


def _is_relative(instruction: Instruction) -> bool:
    """Whether *instruction* computes a rip-relative address."""
    match instruction:
        case Instruction("lea", (Register(_, 64), Mem(rip=True))):
            return True
    return False


def _as_move(instruction: Instruction) -> Instruction:
    """A rip-relative address as a constant."""
    match instruction:
        case Instruction("lea", (Register(_, 64) as target, Mem(rip=True, displacement=address))):
            return Instruction("mov", (target, Imm(address)))
    return instruction


def _as_lea(mnemonic: str, operands: Sequence[Operand]) -> Instruction | None:
    """A rip-relative address that is moved to a register; there is no other way to have one."""
    match mnemonic, tuple(operands):
        case "mov", (Register(_, 64) as target, Imm(Symbol() | Expression("+") as address)):
            return Instruction("lea", (target, Mem(displacement=address, rip=True)))
    return None


def _is_modelled(instruction: Instruction) -> bool:
    try:
        features(instruction)
    except UnmodelledForm:
        return False
    return True
