"""
What an instruction reads, may write and must overwrite, as location masks, and where control goes from it.

The base is iced-x86's access information. The tables here add what a liveness analysis needs on top: a flag or
register that some path leaves alone is written, but not killed.
"""

from dataclasses import dataclass
from enum import Enum, auto
from functools import reduce
from operator import or_

import iced_x86 as iced
from iced_x86 import FlowControl, Mnemonic, OpAccess

from ruledb.machine.codec_operands import GENERAL_REGISTERS
from ruledb.machine.registers import ALL_FLAGS, ALL_REGISTERS, FLAG_BIT, lane_mask, register_named, written_mask

__all__ = ["Effects", "Flow", "effects_of"]


class Flow(Enum):
    """Where control goes after an instruction."""

    NEXT = auto()
    JUMP = auto()
    CONDITIONAL = auto()
    INDIRECT_JUMP = auto()
    CALL = auto()
    INDIRECT_CALL = auto()
    RETURN = auto()
    STOP = auto()
    SYSCALL = auto()
    INTERRUPT = auto()
    INVALID = auto()


@dataclass(frozen=True, slots=True)
class Effects:
    """
    The effects of one encoding, wherever it stands.

    *reads*: locations whose value may matter to another location, to memory or to the flow. *writes*: locations
    that may change. *kills*: locations that every path overwrites, whatever they held; flags that the manual
    calls undefined are among them. What a call or return means for registers is a convention's business, not told here.
    """

    flow: Flow
    reads: int = 0
    writes: int = 0
    kills: int = 0
    loads: bool = False
    stores: bool = False
    is_nop: bool = False
    has_lock: bool = False
    has_rep: bool = False
    segment: str = ""
    divides: bool = False


_FLOWS = {
    FlowControl.NEXT: Flow.NEXT,
    FlowControl.UNCONDITIONAL_BRANCH: Flow.JUMP,
    FlowControl.INDIRECT_BRANCH: Flow.INDIRECT_JUMP,
    FlowControl.CONDITIONAL_BRANCH: Flow.CONDITIONAL,
    FlowControl.RETURN: Flow.RETURN,
    FlowControl.CALL: Flow.CALL,
    FlowControl.INDIRECT_CALL: Flow.INDIRECT_CALL,
    FlowControl.INTERRUPT: Flow.INTERRUPT,
    FlowControl.XBEGIN_XABORT_XEND: Flow.NEXT,
    FlowControl.EXCEPTION: Flow.STOP,
}

_FLOW_BY_MNEMONIC = {
    Mnemonic.HLT: Flow.STOP,
    Mnemonic.INT3: Flow.STOP,
    # An abort rolls the registers back to their values at xbegin and goes to its target.
    Mnemonic.XBEGIN: Flow.CONDITIONAL,
    Mnemonic.SYSCALL: Flow.SYSCALL,
    # iced calls these calls; who answers and how is unknown.
    Mnemonic.SYSENTER: Flow.INTERRUPT,
    Mnemonic.VMCALL: Flow.INTERRUPT,
    Mnemonic.VMMCALL: Flow.INTERRUPT,
    Mnemonic.VMFUNC: Flow.INTERRUPT,
    Mnemonic.VMGEXIT: Flow.INTERRUPT,
    Mnemonic.VMLAUNCH: Flow.INTERRUPT,
    Mnemonic.VMRESUME: Flow.INTERRUPT,
    Mnemonic.TDCALL: Flow.INTERRUPT,
    Mnemonic.SEAMCALL: Flow.INTERRUPT,
}

_READS = frozenset({OpAccess.READ, OpAccess.COND_READ, OpAccess.READ_WRITE, OpAccess.READ_COND_WRITE, OpAccess.COND_WRITE})
"""A register written on some paths only keeps its old value on the others: it depends on it."""

_WRITES = frozenset({OpAccess.WRITE, OpAccess.COND_WRITE, OpAccess.READ_WRITE, OpAccess.READ_COND_WRITE})
_KILLS = frozenset({OpAccess.WRITE, OpAccess.READ_WRITE})

_COUNTED = frozenset(getattr(Mnemonic, name) for name in ("SHL", "SAL", "SHR", "SAR", "ROL", "ROR", "RCL", "RCR", "SHLD", "SHRD"))
"""A count of zero in cl leaves every flag as it was. For immediate counts iced is exact."""

_MAY_KEEP = frozenset({Mnemonic.RDSSPD, Mnemonic.RDSSPQ, Mnemonic.TZCNT, Mnemonic.LZCNT})
"""
Without shadow stacks `rdssp` is a NOP, and compilers' `xor eax, eax; rdsspq rax` relies on it. Processors before BMI run
`tzcnt` as `bsf`, which keeps its destination for a source of zero.
"""

_RFLAGS = {getattr(iced.RflagsBits, name): FLAG_BIT[name] for name in FLAG_BIT}


def _flag_masks() -> tuple[int, ...]:
    bits = max(_RFLAGS).bit_length()
    return tuple(reduce(or_, (mask for bit, mask in _RFLAGS.items() if value & bit), 0) for value in range(1 << bits))


_FLAG_MASKS = _flag_masks()


def _flags(rflags: int) -> int:
    """Mask of the flags in one of iced's flag sets; the direction flag and others are not modelled."""
    return _FLAG_MASKS[rflags & (len(_FLAG_MASKS) - 1)]


def _registers(names: str) -> int:
    return reduce(or_, (lane_mask(r) for name in names.split() if (r := register_named(name)) is not None))


_EVERYTHING = ALL_REGISTERS | ALL_FLAGS
_SYSCALL = (_registers("rax rdi rsi rdx r10 r8 r9 rsp"), _registers("rax rcx r11"), _registers("rcx r11"))
"""Reads, writes and kills by Linux's convention: r11 gets the flags, but nobody reads them there."""

_FACTORY = iced.InstructionInfoFactory()


def effects_of(raw: iced.Instruction) -> Effects:
    """The effects of iced's instruction. Unknown or stopping ones read everything and kill nothing."""
    if raw.code == iced.Code.INVALID:
        return Effects(Flow.INVALID, _EVERYTHING, _EVERYTHING)
    flow = _FLOW_BY_MNEMONIC.get(raw.mnemonic) or _FLOWS[raw.flow_control]
    if flow in (Flow.STOP, Flow.INTERRUPT):
        return Effects(flow, _EVERYTHING, _EVERYTHING)
    info = _FACTORY.info(raw)
    accesses = {memory.access for memory in info.used_memory()}
    reads, writes, kills = _SYSCALL if flow is Flow.SYSCALL else _masks(raw, info)
    return Effects(
        flow,
        reads,
        writes,
        kills,
        loads=not accesses.isdisjoint(_LOADS),
        stores=not accesses.isdisjoint(_WRITES),
        is_nop=raw.mnemonic in _NOPS,
        has_lock=raw.has_lock_prefix,
        has_rep=_repeats(raw),
        segment=_SEGMENTS.get(raw.memory_segment, "") if accesses else "",
        divides=raw.mnemonic in _DIVISIONS,
    )


_LOADS = _READS - {OpAccess.COND_WRITE}
_DIVISIONS = (Mnemonic.DIV, Mnemonic.IDIV)
_NOPS = (Mnemonic.NOP, Mnemonic.RESERVEDNOP)
_SEGMENTS = {iced.Register.FS: "fs", iced.Register.GS: "gs"}


def _repeats(raw: iced.Instruction) -> bool:
    return raw.is_string_instruction and (raw.has_rep_prefix or raw.has_repne_prefix)


def _masks(raw: iced.Instruction, info: iced.InstructionInfo) -> tuple[int, int, int]:
    reads = _flags(raw.rflags_read)
    writes = kills = _flags(raw.rflags_modified)
    if _repeats(raw) or (raw.mnemonic in _COUNTED and raw.op_register(raw.op_count - 1) == iced.Register.CL):
        kills = 0
    for used in info.used_registers():
        register = GENERAL_REGISTERS.get(used.register)
        if register is None:
            continue
        may_keep = raw.mnemonic in _MAY_KEEP and used.access in _WRITES
        if used.access in _READS or may_keep:
            reads |= lane_mask(register)
        if used.access in _WRITES:
            writes |= written_mask(register)
        if used.access in _KILLS and not may_keep:
            kills |= written_mask(register)
    return reads, writes, kills
