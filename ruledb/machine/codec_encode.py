"""
Instructions to bytes, over iced-x86's encoder.

iced has no assembler in Python. Here, a table generated from its description of all encodings gives those whose
operands fit; each is tried, decoded again and compared with the request, and the shortest is taken.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache, lru_cache

import iced_x86 as iced
from iced_x86 import OpCodeOperandKind, OpKind

from ruledb.machine.codec_decode import decode
from ruledb.machine.codec_operands import ICED_REGISTERS, KNOWN_MNEMONICS, MNEMONIC_NAMES, members, memory_bits, to_instruction
from ruledb.machine.constant import signed
from ruledb.machine.instruction import Imm, Instruction, Label, Mem, Operand, instruction_text, registers_of
from ruledb.machine.registers import RBX, Register, register_named

__all__ = ["CodecError", "UnknownMnemonic", "encode", "encode_at", "normalise"]


class CodecError(ValueError):
    """An instruction has no encoding; the message names it and why."""


class UnknownMnemonic(CodecError):
    """No instruction has this mnemonic."""


@dataclass(frozen=True, slots=True)
class _Slot:
    """
    What an operand of an encoding may be: a register of *register_bits*, memory, one *fixed* register, an immediate
    of *immediate_bits* that acts at *acting_bits* (iced's kind *immediate*), or a branch target.
    """

    register_bits: int = 0
    memory: bool = False
    fixed: Register | None = None
    immediate: iced.OpKind_ | None = None
    immediate_bits: int = 0
    acting_bits: int = 0
    value: int | None = None
    branch: bool = False


def _slots() -> dict[iced.OpCodeOperandKind_, _Slot]:
    kinds = OpCodeOperandKind
    slots = {
        kinds.MEM: _Slot(memory=True),
        kinds.BR64_1: _Slot(branch=True),
        kinds.BR64_4: _Slot(branch=True),
        kinds.IMM8_CONST_1: _Slot(immediate=OpKind.IMMEDIATE8, immediate_bits=8, acting_bits=8, value=1),
    }
    for bits in (8, 16, 32, 64):
        for stem in ("REG", "RM", "OPCODE", "VVVV"):
            if (kind := getattr(kinds, f"R{bits}_{stem}", None)) is not None:
                slots[kind] = _Slot(register_bits=bits)
        slots[getattr(kinds, f"R{bits}_OR_MEM")] = _Slot(register_bits=bits, memory=True)
        slots[getattr(kinds, f"IMM{bits}")] = _Slot(immediate=getattr(OpKind, f"IMMEDIATE{bits}"), immediate_bits=bits, acting_bits=bits)
    for field, acting in ((8, 16), (8, 32), (8, 64), (32, 64)):
        kind = getattr(OpKind, f"IMMEDIATE{field}TO{acting}")
        slots[getattr(kinds, f"IMM{field}SEX{acting}")] = _Slot(immediate=kind, immediate_bits=field, acting_bits=acting)
    for name in ("AL", "AX", "EAX", "RAX", "CL", "DX"):
        slots[getattr(kinds, name)] = _Slot(fixed=register_named(name.lower()))
    return slots


@dataclass(frozen=True, slots=True)
class _Candidate:
    """One encoding: iced's code, the slots of its operands and the width of its memory access in bits."""

    code: iced.Code_
    slots: tuple[_Slot, ...]
    memory_bits: int


@cache
def _candidates() -> dict[str, tuple[_Candidate, ...]]:
    """All encodings of integer instructions by mnemonic, ordered by iced's code number."""
    slots = _slots()
    found: dict[str, list[_Candidate]] = {}
    for code in sorted(members(iced.Code)):
        info = iced.OpCodeInfo(code)
        kinds = info.op_kinds()
        is_plain = info.mode64 and info.is_instruction and info.decoder_option == iced.DecoderOptions.NONE
        if is_plain and info.encoding in (iced.EncodingKind.LEGACY, iced.EncodingKind.VEX) and all(k in slots for k in kinds):
            candidate = _Candidate(code, tuple(slots[k] for k in kinds), memory_bits(info.memory_size))
            found.setdefault(MNEMONIC_NAMES[info.mnemonic], []).append(candidate)
    return {name: tuple(candidates) for name, candidates in found.items()}


_FIXED = frozenset(slot.fixed for slot in _slots().values() if slot.fixed is not None)


def _shape(operand: Operand) -> Operand:
    """One operand for all those that fit the same slots, whatever their values."""
    match operand:
        case Register(width=width):
            return operand if operand in _FIXED else Register(RBX, width)
        case Mem(width=width):
            return Mem(width=width)
        case Imm():
            return Imm(0)
        case Label():
            return Label("")
    return operand


@lru_cache(maxsize=1 << 14)
def _fitting(name: str, shapes: tuple[Operand, ...]) -> tuple[_Candidate, ...]:
    """The encodings of *name* whose slots take operands of *shapes*."""
    return tuple(
        candidate
        for candidate in _candidates().get(name, ())
        if len(candidate.slots) == len(shapes)
        and all(_takes(slot, shape, candidate.memory_bits) for slot, shape in zip(candidate.slots, shapes, strict=True))
    )


def _takes(slot: _Slot, shape: Operand, bits: int) -> bool:
    match shape:
        case Register(width=width):
            return shape == slot.fixed or width == slot.register_bits
        case Imm():
            return slot.immediate is not None
        case Mem(width=width):
            return slot.memory and width in (0, bits)
        case Label():
            return slot.branch
    return False


_COMMUTATIVE = frozenset({"xchg", "test"})
"""Two operands whose order means nothing, though an encoding has only one order."""

_PREFIXES = frozenset({"lock", "rep", "repe", "repne", "notrack", "bnd"})


def encode(instruction: Instruction) -> bytes:
    """
    The shortest encoding of *instruction* (of equals, the one that iced numbers first).

    Immediates are taken modulo the width at which they act; an operand width is never changed (`mov rax, 5` stays a
    64-bit instruction of seven bytes). Operands of `xchg` and `test` change places where that is shorter.

    Raises:
        UnknownMnemonic: There is no such mnemonic.
        CodecError: The mnemonic exists, but not with these operands; or a constant, register or label is symbolic.

    """
    return encode_at(instruction, 0)


@lru_cache(maxsize=1 << 18)
def encode_at(instruction: Instruction, address: int) -> bytes:
    """
    As `encode`, for an instruction that will stand at *address*: direct jumps to ``Label("0x…")`` and rip-relative
    operands, both absolute, are encoded relative to it.

    Raises:
        CodecError: As for `encode`; also where the distance does not fit in 32 bits.

    """
    _require_concrete(instruction)
    *prefixes, name = instruction.mnemonic.split()
    if name not in KNOWN_MNEMONICS or not _PREFIXES.issuperset(prefixes):
        raise UnknownMnemonic(f"unknown mnemonic {instruction.mnemonic!r} in {instruction_text(instruction)!r}")
    orders = [instruction.operands]
    if name in _COMMUTATIVE and len(instruction.operands) == 2:
        orders.append(instruction.operands[::-1])
    found = [
        (len(code), order, candidate.code, width, code)
        for order, operands in enumerate(orders)
        for candidate in _fitting(name, tuple(map(_shape, operands)))
        for code, width in _attempt(candidate, Instruction(instruction.mnemonic, operands), prefixes, address)
    ]
    if not found:
        raise CodecError(f"cannot encode {instruction_text(instruction)!r}: {name} has no 64-bit mode form with these operands")
    widths = sorted({width for _, _, _, width, _ in found})
    if len(widths) > 1:
        raise CodecError(f"cannot encode {instruction_text(instruction)!r}: the memory width is open; write one of {widths} bits")
    return min(found)[-1]


def normalise(instruction: Instruction) -> Instruction:
    """
    The instruction as decoding its encoding gives it back: immediates signed at the width where they act, memory
    widths filled in.

    Raises:
        CodecError: As for `encode`.

    """
    return _normalise(instruction)


@lru_cache(maxsize=1 << 16)
def _normalise(instruction: Instruction) -> Instruction:
    return next(decode(encode(instruction))).instruction


def _require_concrete(instruction: Instruction) -> None:
    for operand in instruction.operands:
        constant = operand.value if isinstance(operand, Imm) else operand.displacement if isinstance(operand, Mem) else 0
        symbolic = [str(r) for r in registers_of(operand) if r.is_virtual]
        if not isinstance(constant, int):
            symbolic.append("a constant")
        if isinstance(operand, Label) and _label_address(operand) is None:
            symbolic.append(operand.name)
        if symbolic:
            raise CodecError(f"cannot encode {instruction_text(instruction)!r}: {symbolic[0]} has no concrete value")


def _label_address(label: Label) -> int | None:
    try:
        return int(label.name, 0)
    except ValueError:
        return None


def _attempt(candidate: _Candidate, instruction: Instruction, prefixes: list[str], address: int) -> Iterator[tuple[bytes, int]]:
    """The bytes and the memory width of *instruction* in one encoding that fits its shape, if it exists there."""
    raw = iced.Instruction()
    raw.code = candidate.code
    expected: list[Operand] = []
    for i, (slot, operand) in enumerate(zip(candidate.slots, instruction.operands, strict=True)):
        filled = _fill(raw, i, slot, operand, candidate.memory_bits)
        if filled is None:
            return
        expected.append(filled)
    for prefix in prefixes:
        _set_prefix(raw, prefix)
    encoder = iced.Encoder(64)
    try:
        encoder.encode(raw, address)
    except ValueError:
        return
    code = encoder.take_buffer()
    again = iced.Decoder(64, code, ip=address).decode()
    if again.len == len(code) and to_instruction(again) == Instruction(instruction.mnemonic, tuple(expected)):
        yield code, next((o.width for o in expected if isinstance(o, Mem)), 0)


def _set_prefix(raw: iced.Instruction, prefix: str) -> None:
    match prefix:
        case "lock":
            raw.has_lock_prefix = True
        case "rep" | "repe":
            raw.has_rep_prefix = True
        case "repne" | "bnd":
            raw.has_repne_prefix = True
        case "notrack":
            raw.segment_prefix = iced.Register.DS


def _fill(raw: iced.Instruction, index: int, slot: _Slot, operand: Operand, bits: int) -> Operand | None:
    """Put *operand* into *slot* of *raw*. Returns the operand as decoding should show it, or None where it does not fit."""
    match operand:
        case Register():
            raw.set_op_kind(index, OpKind.REGISTER)
            raw.set_op_register(index, ICED_REGISTERS[operand])
            return operand
        case Imm(int(value)) if slot.immediate is not None:
            acting = signed(value, slot.acting_bits)
            if acting != signed(acting, slot.immediate_bits) or slot.value not in (None, acting):
                return None
            raw.set_op_kind(index, slot.immediate)
            raw.set_immediate_i64(index, acting)
            return Imm(acting)
        case Mem(displacement=int(displacement)):
            raw.set_op_kind(index, OpKind.MEMORY)
            _fill_memory(raw, operand, displacement)
            scale = operand.scale if operand.index is not None else 1
            return replace(operand, scale=scale, displacement=signed(displacement, 64), width=bits)
        case Label() if (target := _label_address(operand)) is not None:
            raw.set_op_kind(index, OpKind.NEAR_BRANCH64)
            raw.near_branch64 = target & _MASK
            return Label(f"{target & _MASK:#x}")
    return None


_MASK = (1 << 64) - 1
_SEGMENTS = {"": iced.Register.NONE, "fs": iced.Register.FS, "gs": iced.Register.GS}


def _fill_memory(raw: iced.Instruction, mem: Mem, displacement: int) -> None:
    raw.memory_base = iced.Register.RIP if mem.rip else ICED_REGISTERS[mem.base] if mem.base else iced.Register.NONE
    raw.memory_index = ICED_REGISTERS[mem.index] if mem.index else iced.Register.NONE
    raw.memory_index_scale = mem.scale
    raw.memory_displacement = displacement & _MASK
    # 1 asks for one byte where the value fits, 8 for the four bytes that addresses without a base must have.
    raw.memory_displ_size = 8 if mem.base is None else 1 if displacement else 0
    raw.segment_prefix = _SEGMENTS.get(mem.segment, iced.Register.NONE)
