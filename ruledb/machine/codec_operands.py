"""Between iced-x86's instructions and ours: register tables, mnemonic names and operands."""

from typing import Any

import iced_x86 as iced
from iced_x86 import OpKind

from ruledb.machine.constant import signed
from ruledb.machine.instruction import Imm, Instruction, Label, Mem, Operand, Other
from ruledb.machine.registers import Register, register_named

__all__ = ["GENERAL_REGISTERS", "ICED_REGISTERS", "KNOWN_MNEMONICS", "MNEMONIC_NAMES", "members", "memory_bits", "to_instruction"]


def members(module: object) -> dict[Any, str]:
    """Value → lower-case name of the constants of one of iced's enumeration modules."""
    return {value: name.lower() for name, value in vars(module).items() if name[0].isupper() and isinstance(value, int)}


_REGISTER_NAMES = members(iced.Register)
GENERAL_REGISTERS = {number: register for number, name in _REGISTER_NAMES.items() if (register := register_named(name)) is not None}
"""iced's register number → our register."""

ICED_REGISTERS: dict[Register, iced.Register_] = {register: number for number, register in GENERAL_REGISTERS.items()}
"""Our register → iced's register number."""

MNEMONIC_NAMES = members(iced.Mnemonic) | {iced.Mnemonic.SAL: "shl"}
"""iced's mnemonic number → Intel name; the undocumented twin encoding of `shl` has the same name."""

KNOWN_MNEMONICS = frozenset(MNEMONIC_NAMES.values())

_IMMEDIATE_BITS = {
    OpKind.IMMEDIATE8: 8,
    OpKind.IMMEDIATE8_2ND: 8,
    OpKind.IMMEDIATE16: 16,
    OpKind.IMMEDIATE32: 32,
    OpKind.IMMEDIATE64: 64,
    OpKind.IMMEDIATE8TO16: 16,
    OpKind.IMMEDIATE8TO32: 32,
    OpKind.IMMEDIATE8TO64: 64,
    OpKind.IMMEDIATE32TO64: 64,
}
"""Kind of immediate → the width in bits at which it acts."""

_BRANCHES = (OpKind.NEAR_BRANCH64, OpKind.NEAR_BRANCH32, OpKind.NEAR_BRANCH16)
_SEGMENTS = {iced.Register.FS: "fs", iced.Register.GS: "gs"}
"""The segments whose base is not zero in 64-bit mode; other prefixes change nothing."""

_TEXT_WIDTHS = frozenset({8, 16, 32, 64, 128})


def memory_bits(memory_size: iced.MemorySize_) -> int:
    """The access of iced's memory size in bits; 0 for none, and for widths that our text has no word for."""
    bits = 8 * iced.MemorySizeExt.size(memory_size)
    return bits if bits in _TEXT_WIDTHS else 0


def to_instruction(raw: iced.Instruction) -> Instruction:
    """
    Our instruction for iced's. String instructions have no operands, NOPs only those that are written in text,
    and whatever has no place in our operands (vector indexes, far pointers) becomes an `Other`.
    """
    name = " ".join([*_prefixes(raw), MNEMONIC_NAMES[raw.mnemonic] + ("w" if raw.code in _WORD_STACK else "")])
    if raw.is_string_instruction or raw.mnemonic == iced.Mnemonic.XLATB:
        return Instruction(name)
    return Instruction(name, tuple(_operand(raw, i) for i in range(raw.op_count)))


_WORD_STACK = frozenset(getattr(iced.Code, name) for name in ("PUSHW_IMM8", "PUSH_IMM16", "LEAVEW", "ENTERW_IMM16_IMM8"))
"""16-bit stack operations whose operands do not tell; written with GNU's suffix."""


def _prefixes(raw: iced.Instruction) -> list[str]:
    names: list[str] = []
    if raw.has_lock_prefix:
        names.append("lock")
    compares = raw.mnemonic in _COMPARING_STRINGS
    if raw.has_rep_prefix:
        names.append("repe" if compares else "rep")
    elif raw.has_repne_prefix:
        names.append("repne" if raw.is_string_instruction else "bnd")
    if raw.segment_prefix == iced.Register.DS and raw.flow_control in _INDIRECT:
        names.append("notrack")
    return names


_INDIRECT = (iced.FlowControl.INDIRECT_BRANCH, iced.FlowControl.INDIRECT_CALL)
_COMPARING_STRINGS = frozenset(getattr(iced.Mnemonic, stem + width) for stem in ("CMPS", "SCAS") for width in "BWDQ")


def _operand(raw: iced.Instruction, index: int) -> Operand:
    kind = raw.op_kind(index)
    if kind == OpKind.REGISTER:
        number = raw.op_register(index)
        return GENERAL_REGISTERS.get(number) or Other(_other_name(_REGISTER_NAMES[number]))
    if (bits := _IMMEDIATE_BITS.get(kind)) is not None:
        return Imm(signed(raw.immediate(index), bits))
    if kind == OpKind.MEMORY:
        return _memory(raw)
    if kind in _BRANCHES:
        return Label(f"{raw.near_branch_target:#x}")
    return Other("far" if kind in (OpKind.FAR_BRANCH16, OpKind.FAR_BRANCH32) else "memory")


def _other_name(name: str) -> str:
    return f"st({name[2:]})" if name.startswith("st") else name


def _memory(raw: iced.Instruction) -> Mem | Other:
    width = memory_bits(raw.memory_size)
    segment = _SEGMENTS.get(raw.segment_prefix, "")
    if raw.is_ip_rel_memory_operand:
        return Mem(displacement=signed(raw.ip_rel_memory_address, 64), width=width, rip=True, segment=segment)
    base, index = _address_register(raw.memory_base), _address_register(raw.memory_index)
    if isinstance(base, Other) or isinstance(index, Other):
        return Other("memory")
    bits = min((r.width for r in (base, index) if r is not None), default=64)
    displacement = signed(raw.memory_displacement, bits)
    return Mem(base, index, raw.memory_index_scale if index else 1, displacement, width, segment=segment)


def _address_register(number: int) -> Register | Other | None:
    if number == iced.Register.NONE:
        return None
    return GENERAL_REGISTERS.get(number) or Other(_REGISTER_NAMES[number])
