"""The second decoder, capstone, and whether both read the same instructions."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from ruledb.machine.codec_decode import decode
from ruledb.machine.codec_effects import Flow

__all__ = ["OtherDecoded", "agrees", "decode_other"]


@dataclass(frozen=True, slots=True)
class OtherDecoded:
    """An instruction as the second decoder reads it: *operands* is its own Intel-syntax text."""

    address: int
    length: int
    mnemonic: str
    operands: str


@cache
def _disassembler() -> Any:
    import capstone  # noqa: PLC0415  # dear to import, and needed only where something is to be written

    return capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)


def decode_other(code: bytes, address: int = 0) -> Iterator[OtherDecoded]:
    """The instructions of *code* by capstone; ends at the first bytes that it cannot read."""
    for start, length, mnemonic, operands in _disassembler().disasm_lite(code, address):
        yield OtherDecoded(start, length, mnemonic, operands)


_SPELLINGS = {
    "movabs": "mov",
    "sal": "shl",
    "int1": "icebp",
    "rep": "",
    "repz": "repe",
    "repnz": "repne",
    "wait": "fwait",
    "fwait": "wait",
    "retq": "ret",
    "cmovnb": "cmovae",
}
"""Capstone's words where they differ from ours; a repeat prefix without a meaning is dropped."""


_COMPARISON = re.compile(r"(v?cmp)(?:eq|lt|le|unord|neq|nlt|nle|ord)([sp][sd])")
"""Capstone writes the predicate of a vector comparison into its name."""


def _words(mnemonic: str) -> str:
    spelled = (_SPELLINGS.get(word, word) for word in mnemonic.split())
    return " ".join(_COMPARISON.sub(r"\1\2", word) for word in spelled if word)


def agrees(code: bytes) -> bool:
    """
    Whether both decoders read *code* as the same instructions: equal lengths, equal mnemonics up to spelling, no
    invalid bytes, and nothing left over.
    """
    ours = list(decode(code))
    theirs = list(decode_other(code))
    return len(ours) == len(theirs) and all(
        our.flow is not Flow.INVALID and our.length == their.length and _same_name(our.instruction.mnemonic, their.mnemonic)
        for our, their in zip(ours, theirs, strict=True)
    )


def _same_name(ours: str, theirs: str) -> bool:
    return _words(ours) == _words(theirs)
