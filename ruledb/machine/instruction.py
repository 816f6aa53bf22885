"""Instructions as values: a mnemonic and operands, and their Intel-syntax text."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ruledb.machine.constant import Constant, constant_text, parse_constant, symbols_in
from ruledb.machine.registers import Register, register_named

__all__ = [
    "Imm",
    "Instruction",
    "Label",
    "Mem",
    "Operand",
    "Other",
    "SyntaxProblem",
    "constants_of",
    "instruction_text",
    "parse_instruction",
    "parse_sequence",
    "registers_of",
    "sequence_text",
    "symbols_of",
]


class SyntaxProblem(ValueError):
    """A text is not an instruction; the message names the text and what is expected."""


@dataclass(frozen=True, slots=True)
class Imm:
    """An immediate. Its width is the form's business; concrete values are signed at the width where they act."""

    value: Constant


@dataclass(frozen=True, slots=True)
class Mem:
    """
    A memory operand, or the address of `lea`: base + index * scale + displacement.

    *width* is the access in bits (0 for `lea`, and where a text leaves it open). With *rip*, *displacement* is
    the absolute address.
    """

    base: Register | None = None
    index: Register | None = None
    scale: int = 1
    displacement: Constant = 0
    width: int = 0
    rip: bool = False
    segment: str = ""

    def __post_init__(self) -> None:
        if self.scale not in (1, 2, 4, 8):
            raise ValueError(f"address scale {self.scale}: expected 1, 2, 4 or 8")


@dataclass(frozen=True, slots=True)
class Label:
    """The opaque target of a direct jump: a name, or ``0x…`` for an address."""

    name: str


@dataclass(frozen=True, slots=True)
class Other:
    """A register outside the general ones (xmm0, st, cr3, fs): known to the decoder, modelled by nothing."""

    name: str


Operand = Register | Imm | Mem | Label | Other


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction: lower-case mnemonic (Intel names: `sete`, `cmovb`, `shl`) and operands, destination first."""

    mnemonic: str
    operands: tuple[Operand, ...] = ()

    def __str__(self) -> str:
        return instruction_text(self)


_SIZES = {8: "byte ptr ", 16: "word ptr ", 32: "dword ptr ", 64: "qword ptr ", 128: "xmmword ptr ", 0: ""}
_SIZE_WORDS = {"byte": 8, "word": 16, "dword": 32, "qword": 64, "xmmword": 128}
_SYNONYMS = {
    **{
        f"{stem}{old}": f"{stem}{new}"
        for stem in ("set", "cmov", "j")
        for old, new in (
            ("z", "e"), ("nz", "ne"), ("c", "b"), ("nc", "ae"), ("nae", "b"), ("nb", "ae"), ("na", "be"), ("nbe", "a"),
            ("nge", "l"), ("nl", "ge"), ("ng", "le"), ("nle", "g"), ("pe", "p"), ("po", "np"),
        )
    },
    "sal": "shl",
    "movabs": "mov",
}  # fmt: skip
"""Alternative spellings; `movabs` is `mov` whose immediate needs 64 bits."""

_SIZE = re.compile(r"(byte|word|dword|qword|xmmword)\s+(?:ptr\s+)?", re.IGNORECASE)
_OTHER = re.compile(r"(?:[xyz]?mm\d+|st(?:\(\d\))?|[cd]r\d+|[cdefgs]s|k\d|tmm\d)", re.IGNORECASE)


def registers_of(operand: Operand) -> tuple[Register, ...]:
    """The general registers that *operand* names."""
    match operand:
        case Register():
            return (operand,)
        case Mem(base, index):
            return tuple(r for r in (base, index) if r is not None)
        case _:
            return ()


def constants_of(instructions: Sequence[Instruction]) -> Iterator[Constant]:
    """Immediates and displacements of *instructions* in text order (displacement 0 included)."""
    for instruction in instructions:
        for operand in instruction.operands:
            if isinstance(operand, Imm):
                yield operand.value
            elif isinstance(operand, Mem):
                yield operand.displacement


def _mem_text(mem: Mem) -> str:
    parts: list[str] = []
    if mem.rip:
        parts.append("rip")
    if mem.base is not None:
        parts.append(str(mem.base))
    if mem.index is not None:
        parts.append(f"{mem.index}*{mem.scale}")
    shown = constant_text(mem.displacement)
    if mem.displacement != 0 or not parts:
        parts.append(shown)
    inner = "+".join(parts).replace("+-", "-")
    segment = f"{mem.segment}:" if mem.segment else ""
    return f"{_SIZES[mem.width]}{segment}[{inner}]"


def instruction_text(instruction: Instruction) -> str:
    """Intel-syntax text of *instruction*; `parse_instruction` reads it back to an equal value."""

    def operand_text(operand: Operand) -> str:
        match operand:
            case Register():
                return str(operand)
            case Imm(value):
                return constant_text(value)
            case Mem():
                return _mem_text(operand)
            case Label(name) | Other(name):
                return name
        raise AssertionError(operand)

    return " ".join([instruction.mnemonic, ", ".join(map(operand_text, instruction.operands))]).strip()


def sequence_text(instructions: Sequence[Instruction]) -> str:
    """Instructions joined by ``; ``."""
    return "; ".join(map(instruction_text, instructions))


def parse_sequence(text: str) -> tuple[Instruction, ...]:
    """
    Instructions of *text*, one a line or split by ``;``; ``#`` starts a comment.

    Raises:
        SyntaxProblem: A line is no instruction.

    """
    lines = (line.partition("#")[0] for line in text.splitlines())
    pieces = (piece.strip() for line in lines for piece in line.split(";"))
    return tuple(parse_instruction(piece) for piece in pieces if piece)


def parse_instruction(text: str) -> Instruction:
    """
    The instruction written as *text* in Intel syntax. Only the grammar is checked here; whether such an
    instruction exists is the codec's business.

    Raises:
        SyntaxProblem: The text does not follow the grammar.

    """
    mnemonic, _, rest = text.strip().partition(" ")
    mnemonic = mnemonic.lower()
    if mnemonic in ("lock", "rep", "repe", "repne", "repz", "repnz", "notrack", "bnd"):
        inner = parse_instruction(rest)
        return Instruction(f"{mnemonic} {inner.mnemonic}", inner.operands)
    if not mnemonic.isalnum():
        raise SyntaxProblem(f"{text!r} is not an instruction: expected Intel syntax such as 'add eax, 1'")
    mnemonic = _SYNONYMS.get(mnemonic, mnemonic)
    words = [word.strip() for word in rest.split(",")] if rest.strip() else []
    is_jump = mnemonic == "call" or mnemonic.startswith(("j", "loop"))
    try:
        operands = tuple(_parse_operand(word, is_jump) for word in words)
    except ValueError as problem:
        raise SyntaxProblem(f"{text!r}: {problem}") from None
    if mnemonic == "lea":
        operands = tuple(_without_width(o) for o in operands)
    return Instruction(mnemonic, operands)


def _without_width(operand: Operand) -> Operand:
    if not isinstance(operand, Mem):
        return operand
    return Mem(operand.base, operand.index, operand.scale, operand.displacement, 0, operand.rip, operand.segment)


def _parse_operand(word: str, is_jump: bool) -> Operand:
    register = register_named(word.lower())
    if register is not None:
        return register
    if _OTHER.fullmatch(word):
        return Other(word.lower())
    size = _SIZE.match(word)
    if size or "[" in word:
        return _parse_mem(word[size.end() :] if size else word, _SIZE_WORDS[size[1].lower()] if size else 0)
    if is_jump:
        return Label(word)
    if not word:
        raise ValueError("an operand is empty: expected a register, number or [address]")
    return Imm(parse_constant(word))


_TERM = re.compile(r"([+-]?)\s*((?:[^+\-()]|\([^()]*(?:\([^()]*\)[^()]*)*\))+)")


def _parse_mem(word: str, width: int) -> Mem:
    segment, _, rest = word.rpartition(":")
    rest = rest.strip()
    if not (rest.startswith("[") and rest.endswith("]") and rest[1:-1].strip()):
        raise ValueError(f"{word!r} is not an operand: expected a register, number or [address]")
    base = index = None
    scale, displacement, rip = 1, "", False
    position, inner = 0, rest[1:-1].strip()
    while position < len(inner):
        term = _TERM.match(inner, position)
        if term is None:
            raise ValueError(f"address {rest!r}: expected [base+index*scale+displacement]")
        position = term.end()
        sign, body = term[1], term[2].strip()
        left, star, right = (part.strip() for part in body.partition("*"))
        if star and register_named(right.lower()):
            left, right = right, left
        register = register_named(left.lower())
        if left.lower() == "rip" and not star:
            rip = True
        elif register is None:
            displacement += f"{sign or '+'}{body}"
        elif sign == "-":
            raise ValueError(f"address {rest!r}: a register cannot be subtracted")
        elif star or (base is not None and index is None):
            if index is not None:
                raise ValueError(f"address {rest!r}: two index registers")
            index, scale = register, int(right) if star else 1
        elif base is None:
            base = register
        else:
            raise ValueError(f"address {rest!r}: more than two registers")
    value = parse_constant(displacement.removeprefix("+")) if displacement else 0
    return Mem(base, index, scale, value, width, rip, segment.strip().lower())


def symbols_of(instructions: Sequence[Instruction]) -> frozenset[int]:
    """Indices of the constant symbols in *instructions*."""
    return frozenset().union(*(symbols_in(c) for c in constants_of(instructions)))
