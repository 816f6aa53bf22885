"""Bytes to instructions with their effects, over iced-x86."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import NamedTuple

import iced_x86 as iced

from ruledb.machine.codec_effects import Effects, Flow, effects_of
from ruledb.machine.codec_operands import to_instruction
from ruledb.machine.constant import signed
from ruledb.machine.instruction import Instruction

__all__ = ["Decoded", "Encoding", "decode", "encoding_of", "lengths", "split", "without_constants"]


@dataclass(frozen=True, slots=True)
class Decoded:
    """
    One decoded instruction at *address*.

    *target* is the absolute target of a direct jump, conditional jump or call; *reference* the absolute address
    of a rip-relative operand. Effects are shared by all occurrences of an encoding.
    """

    address: int
    code: bytes
    effects: Effects
    target: int | None = None
    reference: int | None = None

    @property
    def length(self) -> int:
        """Length in bytes."""
        return len(self.code)

    @property
    def end(self) -> int:
        """Address of the byte behind."""
        return self.address + len(self.code)

    @property
    def instruction(self) -> Instruction:
        """The instruction as a value; `Instruction("(bad)")` where the bytes are none."""
        is_relative = self.target is not None or self.reference is not None
        return _instruction(self.code, self.address if is_relative else 0)

    @property
    def flow(self) -> Flow:
        """Where control goes from here."""
        return self.effects.flow

    @property
    def reads(self) -> int:
        """Mask of the locations that matter to the result."""
        return self.effects.reads

    @property
    def writes(self) -> int:
        """Mask of the locations that may change."""
        return self.effects.writes

    @property
    def kills(self) -> int:
        """Mask of the locations that are overwritten on every path."""
        return self.effects.kills

    @property
    def loads(self) -> bool:
        """Whether memory may be read."""
        return self.effects.loads

    @property
    def stores(self) -> bool:
        """Whether memory may be written."""
        return self.effects.stores

    @property
    def is_nop(self) -> bool:
        """Whether this is a NOP of any length (`endbr64` and `pause` are none)."""
        return self.effects.is_nop

    @property
    def has_lock(self) -> bool:
        """Whether a lock prefix is written (`xchg` with memory locks without one)."""
        return self.effects.has_lock

    @property
    def has_rep(self) -> bool:
        """Whether a string instruction is repeated."""
        return self.effects.has_rep

    @property
    def segment(self) -> str:
        """Segment of the memory access, "fs" or "gs", or ""."""
        return self.effects.segment


_TARGETS = (Flow.JUMP, Flow.CONDITIONAL, Flow.CALL)


def decode(code: bytes, address: int = 0) -> Iterator[Decoded]:
    """
    The instructions of *code*, which stands at *address*, one behind the other. Bytes that are no instruction
    come as one of flow `INVALID`, and decoding goes on behind them; together the pieces are all of *code*.
    """
    start = 0
    for raw in iced.Decoder(64, code, ip=address):
        end = start + raw.len
        piece = code[start:end]
        effects = _effects(piece)
        target = raw.near_branch_target if effects.flow in _TARGETS else None
        reference = raw.ip_rel_memory_address if raw.is_ip_rel_memory_operand else None
        yield Decoded(address + start, piece, effects, target, reference)
        start = end


def lengths(code: bytes) -> bytes:
    """The number of bytes of each instruction of *code*, as `decode` cuts them; one byte for each."""
    return bytes(map(len, iced.Decoder(64, code)))


def split(code: bytes) -> list[bytes]:
    """The bytes of each instruction of *code*, as `decode` cuts them."""
    pieces: list[bytes] = []
    start = 0
    for raw in iced.Decoder(64, code):
        end = start + raw.len
        pieces.append(code[start:end])
        start = end
    return pieces


def without_constants(code: bytes) -> bytes:
    """One instruction's bytes with zeros for displacement, immediates and branch distance: equal for one form on the same registers."""
    decoder = iced.Decoder(64, code)
    raw = decoder.decode()
    if raw.code == iced.Code.INVALID:
        return code
    o = decoder.get_constant_offsets(raw)
    bare = bytearray(code)
    for start, size in (
        (o.displacement_offset, o.displacement_size),
        (o.immediate_offset, o.immediate_size),
        (o.immediate_offset2, o.immediate_size2),
    ):
        bare[start : start + size] = bytes(size)
    return bytes(bare)


class Encoding(NamedTuple):
    """
    What the bytes of an instruction mean wherever they stand. *target* and the address of a rip-relative operand,
    *reference*, are relative to the instruction's own address, modulo 2**64. Equal *effects* are one object. *distance*: first
    byte and number of bytes of the field that holds the distance from the instruction's end to either; (0, 0): there is none.
    """

    effects: Effects
    target: int | None
    reference: int | None
    distance: tuple[int, int]


def encoding_of(code: bytes) -> Encoding:
    """What the instruction *code* means wherever it stands."""
    decoder = iced.Decoder(64, code)
    raw = decoder.decode()
    effects = _shared_effects(code, decoder, raw)
    if effects.flow in _TARGETS:
        offsets = decoder.get_constant_offsets(raw)
        return Encoding(effects, raw.near_branch_target, None, (offsets.immediate_offset, offsets.immediate_size))
    if not raw.is_ip_rel_memory_operand:
        return Encoding(effects, None, None, (0, 0))
    is_short = raw.memory_base == iced.Register.EIP  # such an address wraps around at 32 bits, so it is no plain distance
    reference = signed(raw.ip_rel_memory_address, 32 if is_short else 64) & _WORD
    offsets = decoder.get_constant_offsets(raw)
    return Encoding(effects, None, reference, (0, 0) if is_short else (offsets.displacement_offset, offsets.displacement_size))


_WORD = (1 << 64) - 1


@lru_cache(maxsize=1 << 18)
def _effects(code: bytes) -> Effects:
    """The effects of one encoding."""
    decoder = iced.Decoder(64, code)
    return _shared_effects(code, decoder, decoder.decode())


_PLAIN_IMMEDIATES = frozenset(
    getattr(iced.Mnemonic, name) for name in ("ADD", "OR", "ADC", "SBB", "AND", "SUB", "XOR", "CMP", "TEST", "MOV", "PUSH", "IMUL")
)
"""Mnemonics whose effects are the same for all immediates. A shift's depend on whether its count is zero."""


def _shared_effects(code: bytes, decoder: iced.Decoder, raw: iced.Instruction) -> Effects:
    """The effects of *raw*. Displacements, branch distances and most immediates do not matter to them: those share one object."""
    if raw.code == iced.Code.INVALID:
        return _INVALID
    offsets = decoder.get_constant_offsets(raw)
    bare = bytearray(code)
    start, size = offsets.displacement_offset, offsets.displacement_size
    bare[start : start + size] = bytes(size)
    if raw.near_branch_target or raw.mnemonic in _PLAIN_IMMEDIATES:
        start, size = offsets.immediate_offset, offsets.immediate_size
        bare[start : start + size] = bytes(size)
    return _form_effects(bytes(bare))


@lru_cache(maxsize=1 << 16)
def _form_effects(code: bytes) -> Effects:
    effects = effects_of(iced.Decoder(64, code).decode())
    return _one_of(effects)


@cache
def _one_of(effects: Effects) -> Effects:
    """One object for all equal *effects*, since forms by far outnumber them."""
    return effects


_INVALID = effects_of(iced.Decoder(64, b"\x06").decode())


@lru_cache(maxsize=1 << 16)
def _instruction(code: bytes, address: int) -> Instruction:
    raw = iced.Decoder(64, code, ip=address).decode()
    return Instruction("(bad)") if raw.code == iced.Code.INVALID else to_instruction(raw)
