"""
Addresses as sums: what a window adds up in its registers before it accesses memory.

Two addresses that are the same sum are equal; of others nothing is known here. A sum is over *values*: what a register holds at
the start, a constant symbol, or what an instruction makes of other values. The same instruction makes the same of the same.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field

from ruledb.machine.constant import Constant, Expression, Symbol, evaluate, signed
from ruledb.machine.instruction import Imm, Instruction, Mem, Operand
from ruledb.machine.registers import ALL_FLAGS, Register, families_of
from ruledb.semantics.symbolic import reads_and_writes

__all__ = ["RIP", "Sum", "Values", "as_operand"]

RIP = "rip"
"""The value that is added to a rip-relative address, whatever it is."""

_BITS = 64


@dataclass(frozen=True, slots=True)
class Sum:
    """``number + Σ factor · value`` modulo 2**64; *terms* are (value, factor), no factor 0. Values are families, symbols or others."""

    terms: frozenset[tuple[Hashable, int]] = frozenset()
    number: int = 0

    @classmethod
    def of(cls, terms: Mapping[Hashable, int], number: int) -> "Sum":
        """The sum with factors and number brought into range."""
        kept = {(value, signed(factor, _BITS)) for value, factor in terms.items() if signed(factor, _BITS)}
        return cls(frozenset(kept), signed(number, _BITS))

    def plus(self, other: "Sum", times: int = 1) -> "Sum":
        """``self + times · other``."""
        terms = dict(self.terms)
        for value, factor in other.terms:
            terms[value] = terms.get(value, 0) + times * factor
        return Sum.of(terms, self.number + times * other.number)


def _constant(constant: Constant) -> Sum:
    match constant:
        case int():
            return Sum(number=signed(constant, _BITS))
        case Expression("-", (a,)):
            return Sum().plus(_constant(a), -1)
        case Expression("+", (a, b)):
            return _constant(a).plus(_constant(b))
        case Expression("*", (a, int(n))):
            return Sum().plus(_constant(a), n)
    return Sum(frozenset({(constant, 1)}))


@dataclass(slots=True)
class Values:
    """What the registers hold while a window runs; at the start each family is a value of its own."""

    _held: dict[int, Sum] = field(default_factory=dict)
    _n_stores: int = 0
    _n_steps: int = 0

    def register(self, register: Register) -> Sum:
        """What the whole of *register*'s family holds."""
        return self._held.get(register.family, Sum(frozenset({(register.family, 1)})))

    def address(self, mem: Mem) -> Sum | None:
        """The address that *mem* names; None where it takes a part of a register."""
        if any(r is not None and r.width != _BITS for r in (mem.base, mem.index)) or mem.segment:
            return None
        total = _constant(mem.displacement)
        if mem.rip:
            total = total.plus(Sum(frozenset({(RIP, 1)})))
        if mem.base is not None:
            total = total.plus(self.register(mem.base))
        return total if mem.index is None else total.plus(self.register(mem.index), mem.scale)

    def step(self, instruction: Instruction) -> None:
        """Go behind *instruction*."""
        reads, writes, _ = reads_and_writes(instruction)
        result = self._result(instruction)
        made = [] if result is not None else [self._seen(o) for o in instruction.operands]
        # What hangs on flags is like nothing else.
        mark = self._n_steps if reads & ALL_FLAGS else -1
        for family in families_of(writes):
            value: Hashable = (instruction.mnemonic, tuple(made), mark, family if len(families_of(writes)) > 1 else -1)
            self._held[family] = result if result is not None else Sum(frozenset({(value, 1)}))
        self._n_steps += 1
        if instruction.operands and isinstance(instruction.operands[0], Mem) and instruction.operands[0].width:
            self._n_stores += 1

    def _seen(self, operand: Operand) -> Hashable:
        match operand:
            case Register(_, width, high):
                return width, high, self.register(operand)
            case Mem():
                return "load", operand.width, self.address(operand), self._n_stores
        return operand

    def _result(self, instruction: Instruction) -> Sum | None:
        """The sum that a register of 64 bits gets, where it is one of what was there before."""
        match instruction:
            case Instruction("mov" | "lea" | "add" | "sub", (Register(_, 64) as target, source)):
                operand = self._operand(source, is_address=instruction.mnemonic == "lea")
                if operand is None or instruction.mnemonic in ("mov", "lea"):
                    return operand
                return self.register(target).plus(operand, -1 if instruction.mnemonic == "sub" else 1)
            case Instruction("inc" | "dec", (Register(_, 64) as target,)):
                return self.register(target).plus(Sum(number=1), 1 if instruction.mnemonic == "inc" else -1)
            case Instruction("shl", (Register(_, 64) as target, Imm(int(count)))):
                return Sum().plus(self.register(target), 1 << (count & 63))
        return None

    def _operand(self, operand: Operand, *, is_address: bool) -> Sum | None:
        match operand:
            case Register(_, 64):
                return self.register(operand)
            case Imm(value):
                return _constant(value)
            case Mem() if is_address:
                return self.address(operand)
        return None


def as_operand(total: Sum) -> Mem | None:
    """An operand that addresses *total* at the start of a window, without width; None where none does."""
    registers = [(v, n) for v, n in total.terms if isinstance(v, int)]
    constants = [(v, n) for v, n in total.terms if isinstance(v, Symbol | Expression)]
    others = [(v, n) for v, n in total.terms if not isinstance(v, int | Symbol | Expression)]
    displacement = _sum_text(constants, total.number)
    if others:
        return Mem(displacement=displacement, rip=True) if others == [(RIP, 1)] and not registers else None
    match sorted(registers, key=lambda term: (term[1], str(term[0]))):
        case []:
            return None
        case [(int(base), 1)]:
            return Mem(Register(base, _BITS), displacement=displacement)
        case [(int(index), 2 | 4 | 8 as scale)]:
            return Mem(None, Register(index, _BITS), scale, displacement)
        case [(int(base), 3 | 5 | 9 as scale)]:
            return Mem(Register(base, _BITS), Register(base, _BITS), scale - 1, displacement)
        case [(int(base), 1), (int(index), 1 | 2 | 4 | 8 as scale)]:
            return Mem(Register(base, _BITS), Register(index, _BITS), scale, displacement)
    return None


def _sum_text(constants: Sequence[tuple[Constant, int]], number: int) -> Constant:
    """``number + Σ factor · constant`` as one constant."""
    parts: list[Constant] = []
    for constant, factor in sorted(constants, key=str):
        parts.append(constant if factor == 1 else Expression("-", (constant,)) if factor == -1 else Expression("*", (constant, factor)))
    if number or not parts:
        parts.append(number)
    whole = parts[0]
    for part in parts[1:]:
        whole = Expression("+", (whole, part))
    return evaluate(whole, ()) if not constants else whole
