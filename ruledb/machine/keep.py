"""
The keep-list: instructions that compute nothing a data-flow analysis can see, yet stand there for a reason.

| what | why |
| --- | --- |
| clearing a register that held `fs:[0x28]` | scrubs the stack protector's secret |
| clearing a register ahead of `tzcnt`, `popcnt`, `cvtsd2si`, … into it | breaks a false dependency |
| `or [rsp+…], 0` | a stack-clash probe: touches each new page |
| `xchg bx, bx` | a breakpoint of emulators |
| `lea rsp, [rsp+0]`, and `mov edi, edi` in either encoding as a function's first instruction | room for a hot patch |
| Valgrind's client requests, SSC marks | a tool reads and writes registers there, which nothing else tells |

These need no entry, since windows exclude them anyway:

| what | why it stays |
| --- | --- |
| the check of the stack protector (`sub rax, fs:[0x28]`), `endbr64` | barriers |
| `notrack jmp`, and branches with hints | only plain jumps and returns are ever moved |
| NOPs that align a loop, or fill the space behind a jump | a window neither starts nor ends with a NOP, and those at a block's end stay |
| NOPs before a function | they belong to no function |
| areas of `__patchable_function_entries`, probes, XRay's sleds | entries (`ruledb.machine.entries`), which no window spans |

Sources: GCC manual, "Program Instrumentation Options", `ms_hook_prologue`; Intel Optimization Reference Manual, 3.5.1.6
(dependency breaking idioms); Valgrind, `valgrind.h`; Intel SDE, "SSC marks"; Bochs manual, "magic breakpoint".
"""

from collections.abc import Iterator, Sequence
from enum import Enum, auto
from functools import lru_cache

from ruledb.machine.blocks import Block
from ruledb.machine.codec import Decoded, Flow, decode
from ruledb.machine.instruction import Imm, Instruction, Mem
from ruledb.machine.registers import RSP, Register, family_mask

__all__ = ["SSC_MARK", "VALGRIND_PREAMBLE", "has_marker", "kept"]

SSC_MARK = b"\x64\x67\x90"
"""`fs addr32 nop`; the number of the mark is in ebx."""

VALGRIND_PREAMBLE = tuple(bytes.fromhex(code) for code in ("48c1c703", "48c1c70d", "48c1c73d", "48c1c733"))
"""`rol rdi, 3; rol rdi, 13; rol rdi, 61; rol rdi, 51`: together a rotation by 128. An `xchg` of a register with itself follows."""

_MAGIC_BREAKPOINT = b"\x66\x87\xdb"
_HOT_PATCH_ENTRIES = (b"\x8b\xff", b"\x89\xff")

_SLOW_TO_FORGET = ("tzcnt", "lzcnt", "popcnt", "bsf", "bsr", "cvt", "vcvt", "sqrt", "vsqrt")
"""Beginnings of the mnemonics whose result waits for the old value of their destination on some processors."""


class _Role(Enum):
    PLAIN = auto()
    SECRET = auto()
    """Loads the stack protector's secret."""
    CLEARING = auto()
    SLOW = auto()
    ALWAYS = auto()
    """Is kept wherever it stands."""


_NO_ROLE = (_Role.PLAIN, -1)
_LEADING = frozenset({_Role.SECRET, _Role.SLOW, _Role.ALWAYS})
"""Where a block has none of these roles, it has nothing to keep."""


def kept(block: Block) -> frozenset[int]:
    """Indices of the instructions of *block* that are to stay as they are."""
    return frozenset(_kept(block.instructions, is_entry=block.start == block.function))


def has_marker(block: Block) -> bool:
    """Whether *block* holds a request to a simulator, around which registers matter in ways that no code tells."""
    codes = [d.code for d in block.instructions]
    return SSC_MARK in codes or (VALGRIND_PREAMBLE[0] in codes and any(_preambles(codes)))


def _preambles(codes: Sequence[bytes]) -> Iterator[int]:
    """Where Valgrind's preamble starts."""
    length = len(VALGRIND_PREAMBLE)
    return (i for i in range(len(codes) - length + 1) if tuple(codes[i : i + length]) == VALGRIND_PREAMBLE)


def _kept(instructions: Sequence[Decoded], *, is_entry: bool) -> Iterator[int]:
    if is_entry and instructions[0].code in _HOT_PATCH_ENTRIES:
        yield 0
    codes = [d.code for d in instructions]
    if VALGRIND_PREAMBLE[0] in codes:
        for start in _preambles(codes):
            yield from range(start, min(start + len(VALGRIND_PREAMBLE) + 1, len(codes)))
    roles = [_role(d.code) if d.effects.flow is Flow.NEXT and d.reference is None else _NO_ROLE for d in instructions]
    if not _LEADING.isdisjoint(role for role, _ in roles):
        yield from _kept_by_role(instructions, roles)


def _kept_by_role(instructions: Sequence[Decoded], roles: Sequence[tuple[_Role, int]]) -> Iterator[int]:
    secret = 0
    cleared: dict[int, int] = {}
    for i, (instruction, (role, family)) in enumerate(zip(instructions, roles, strict=True)):
        effects = instruction.effects
        if role is _Role.ALWAYS:
            yield i
        if role is _Role.CLEARING and secret & family_mask(family):
            yield i
        if role is _Role.SLOW and family in cleared:
            yield cleared[family]
        secret &= ~effects.writes
        cleared = {f: at for f, at in cleared.items() if not (effects.reads | effects.writes) & family_mask(f)}
        if role is _Role.SECRET:
            secret |= family_mask(family)
        if role is _Role.CLEARING:
            cleared[family] = i


@lru_cache(maxsize=1 << 16)
def _role(code: bytes) -> tuple[_Role, int]:
    """What one encoding is to the keep-list, and the family of its destination (-1: none)."""
    instruction = next(decode(code)).instruction
    operands = instruction.operands
    family = operands[0].family if operands and isinstance(operands[0], Register) else -1
    if code in (SSC_MARK, _MAGIC_BREAKPOINT) or _is_probe(instruction) or _is_hot_patch(instruction):
        return _Role.ALWAYS, family
    if family < 0:
        return _Role.PLAIN, family
    if len(operands) == 2 and isinstance(operands[1], Mem) and operands[1].segment == "fs" and operands[1].displacement == 0x28:
        return (_Role.SECRET if instruction.mnemonic == "mov" else _Role.PLAIN), family
    if _is_clearing(instruction):
        return _Role.CLEARING, family
    reads_itself = any(isinstance(o, Register) and o.family == family for o in operands[1:])
    return (_Role.SLOW if instruction.mnemonic.startswith(_SLOW_TO_FORGET) and not reads_itself else _Role.PLAIN), family


def _is_clearing(instruction: Instruction) -> bool:
    match instruction:
        case Instruction("xor" | "sub", (Register(width=width) as left, right)):
            return width >= 32 and left == right
        case Instruction("mov", (Register(width=width), Imm(0))):
            return width >= 32
        case _:
            return False


def _is_probe(instruction: Instruction) -> bool:
    match instruction:
        case Instruction("or", (Mem(base=Register(family=family)), Imm(0))):
            return family == RSP
        case _:
            return False


def _is_hot_patch(instruction: Instruction) -> bool:
    match instruction:
        case Instruction("lea", (Register(family=family, width=64) as destination, Mem(base=base, index=None, displacement=0))):
            return family == RSP and base == destination
        case _:
            return False
