"""
Canonical forms: registers and constants renamed by first appearance, so that equal code has equal text.

Registers become r0, r1, … by family (al, ax, eax and rax are one). Families that an instruction of the window
uses implicitly (cl as shift count, rax and rdx of mul or cdq) and rsp keep their names. In the *symbolic* variant
constants other than 0, 1 and -1 become c0, c1, …, equal ones the same symbol; the *literal* variant keeps them. The
address of a rip-relative operand is a symbol of its own in both: where a program is loaded nobody knows, so that only
a displacement can be added to it. The target of a closing jump becomes ``L``.

Source: Bansal & Aiken 2006, section 3.1.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import xxhash

from ruledb.machine.constant import Constant, Expression, Symbol, evaluate
from ruledb.machine.instruction import Imm, Instruction, Label, Mem, Operand, registers_of, sequence_text
from ruledb.machine.registers import N_HARDWARE, N_LANES, RAX, RBP, RBX, RCX, RDI, RDX, RSI, RSP, VIRTUAL, Register, family_mask

__all__ = [
    "COUNTED",
    "IMPLICIT",
    "LITERALS",
    "MAX_REGISTERS",
    "TARGET",
    "Canonical",
    "bind",
    "canonicalise",
    "domains",
    "example_families",
    "families_in",
    "fixed_families",
    "immediate_bits",
    "rename",
    "text_digest",
    "to_canonical_mask",
    "touched_mask",
]

MAX_REGISTERS = 8
LITERALS = frozenset({0, 1, -1})

COUNTED = frozenset({"shl", "shr", "sar", "rol", "ror", "rcl", "rcr", "shld", "shrd"})
"""Mnemonics whose last operand, if cl, names rcx implicitly."""

IMPLICIT: Mapping[str, tuple[int, ...]] = {
    **dict.fromkeys(("cbw", "cwde", "cdqe"), (RAX,)),
    **dict.fromkeys(("cwd", "cdq", "cqo", "mul", "div", "idiv"), (RAX, RDX)),
    "mulx": (RDX,),
    "cmpxchg": (RAX,),
    "push": (RSP,),
    "pop": (RSP,),
    "leave": (RBP, RSP),
}
"""Families that a mnemonic uses without naming them (one-operand `imul` is in `fixed_families`)."""

TARGET = Label("L")
"""The canonical target of a closing jump."""

_CL = Register(RCX, 8)


@dataclass(frozen=True, slots=True)
class Canonical:
    """
    A canonical sequence and how to get back: *families*[k] is the hardware family of r<k>, *constants*[i] the value of c<i>
    (for a rip-relative operand: the absolute address), *target* what ``L`` stands for.
    """

    instructions: tuple[Instruction, ...]
    families: tuple[int, ...]
    constants: tuple[Constant, ...]
    target: Label | None = None

    @property
    def text(self) -> str:
        """The key: the text of the sequence."""
        return sequence_text(self.instructions)


def fixed_families(instructions: Sequence[Instruction]) -> frozenset[int]:
    """Families that keep their name in the canonical form of *instructions*."""
    fixed = {RSP}
    for instruction in instructions:
        mnemonic, operands = instruction.mnemonic, instruction.operands
        fixed.update(IMPLICIT.get(mnemonic, ()))
        if mnemonic == "imul" and len(operands) == 1:
            fixed.update((RAX, RDX))
        if mnemonic in COUNTED and operands[-1] == _CL:
            fixed.add(RCX)
    return frozenset(fixed)


def families_in(instructions: Sequence[Instruction]) -> frozenset[int]:
    """All families that *instructions* touch, by name or implicitly."""
    named = {r.family for i in instructions for o in i.operands for r in registers_of(o)}
    uses_stack = any(RSP in IMPLICIT.get(i.mnemonic, ()) for i in instructions)
    return frozenset(named) | (fixed_families(instructions) - (frozenset() if uses_stack else {RSP}))


def rename(
    instructions: Sequence[Instruction],
    register: Callable[[Register], Register],
    constant: Callable[[Constant], Constant],
    *,
    address: Callable[[Constant], Constant] | None = None,
    target: Label | None = None,
) -> tuple[Instruction, ...]:
    """
    *instructions* with every general register and every constant mapped, in text order.

    Args:
        address: Maps the addresses of rip-relative operands; without it *constant* does.
        target: What jumps get as their target; without it they keep theirs.

    """
    absolute = constant if address is None else address

    def renamed(operand: Operand) -> Operand:
        match operand:
            case Register():
                return register(operand)
            case Imm(value):
                return Imm(constant(value))
            case Mem(base, index):
                new_base = register(base) if base is not None else None
                new_index = register(index) if index is not None else None
                moved = (absolute if operand.rip else constant)(operand.displacement)
                return replace(operand, base=new_base, index=new_index, displacement=moved)
            case Label() if target is not None:
                return target
            case _:
                return operand

    return tuple(Instruction(i.mnemonic, tuple(map(renamed, i.operands))) for i in instructions)


def canonicalise(instructions: Sequence[Instruction], *, literal: bool = False) -> Canonical | None:
    """
    The canonical form of *instructions*, or None where it needs more than `MAX_REGISTERS` names.

    A part of a canonical sequence has a canonical form, too: its registers and symbols are renamed.
    """
    fixed = fixed_families(instructions)
    names: dict[int, int] = {}
    symbols: dict[tuple[Constant, bool], int] = {}

    def register(r: Register) -> Register:
        if r.family in fixed:
            return r
        return Register(VIRTUAL + names.setdefault(r.family, len(names)), r.width, r.high)

    def constant(value: Constant) -> Constant:
        is_literal = isinstance(value, int) and (literal or value in LITERALS)
        return value if is_literal else Symbol(symbols.setdefault((value, False), len(symbols)))

    def address(value: Constant) -> Constant:
        return Symbol(symbols.setdefault((value, True), len(symbols)))

    # Names may run past the last one before we know; `Register` would refuse them.
    n_names = len({r.family for i in instructions for o in i.operands for r in registers_of(o)} - fixed)
    if n_names > MAX_REGISTERS:
        return None
    labels = [o for i in instructions for o in i.operands if isinstance(o, Label)]
    renamed = rename(instructions, register, constant, address=address, target=TARGET)
    return Canonical(renamed, tuple(names), tuple(value for value, _ in symbols), labels[0] if labels else None)


def bind(
    instructions: Sequence[Instruction], families: Sequence[int], constants: Sequence[int], target: Label | None = None
) -> tuple[Instruction, ...]:
    """
    The concrete sequence of canonical *instructions*, with constant expressions evaluated on 64 bits; a closing jump goes to *target*.

    Raises:
        ValueError: A high byte is asked of a family without one, or an expression is undefined.

    """

    def register(r: Register) -> Register:
        return Register(families[r.family - VIRTUAL], r.width, r.high) if r.is_virtual else r

    return rename(instructions, register, lambda c: evaluate(c, constants), target=target)


_EXAMPLE = (RBX, RDX, RCX, RAX, RSI, RDI, *range(8, N_HARDWARE))


def example_families(instructions: Sequence[Instruction]) -> tuple[int, ...]:
    """A hardware family for each canonical register of *instructions*, those with a high byte and no REX prefix first."""
    names = families_in(instructions)
    free = [f for f in _EXAMPLE if f not in names]
    return tuple(free[: max((f - VIRTUAL + 1 for f in names if f >= VIRTUAL), default=0)])


def immediate_bits(instruction: Instruction) -> int:
    """Bits of an immediate of *instruction* that are free (it is sign-extended from there to where it acts)."""
    if instruction.mnemonic in COUNTED or instruction.mnemonic in ("bt", "bts", "btr", "btc", "rorx"):
        return 8
    first = instruction.operands[0]
    width = first.width if isinstance(first, Register | Mem) else 64
    return width if instruction.mnemonic == "mov" and isinstance(first, Register) else min(width, 32)


def domains(instructions: Sequence[Instruction]) -> tuple[int, ...]:
    """Bits of each constant symbol c0, c1, … of a canonical sequence: it stands for all signed values of that many bits."""
    bits: dict[int, int] = {}

    def narrow(constant: Constant, n: int) -> None:
        match constant:
            case Symbol(index):
                bits[index] = min(bits.get(index, 64), n)
            case Expression(_, args):
                for arg in args:
                    narrow(arg, 64)
            case _:
                pass

    for instruction in instructions:
        for operand in instruction.operands:
            if isinstance(operand, Imm):
                narrow(operand.value, immediate_bits(instruction))
            elif isinstance(operand, Mem):
                narrow(operand.displacement, 64 if operand.rip else 32)
    return tuple(bits[i] for i in range(len(bits)))


def to_canonical_mask(mask: int, canonical: Canonical, touched: int) -> int:
    """*mask* over hardware families, renamed to the canonical ones of *canonical* and limited to *touched*, plus flags."""
    moved = mask
    for k, family in enumerate(canonical.families):
        lanes = mask >> (N_LANES * family) & 0b1111
        moved |= lanes << (N_LANES * (VIRTUAL + k))
    return moved & touched


def text_digest(text: str) -> str:
    """xxh3-128 of *text*, in hexadecimal."""
    return xxhash.xxh3_128_hexdigest(text.encode())


def touched_mask(instructions: Sequence[Instruction]) -> int:
    """All lanes of every family that *instructions* touch."""
    mask = 0
    for family in families_in(instructions):
        mask |= family_mask(family)
    return mask
