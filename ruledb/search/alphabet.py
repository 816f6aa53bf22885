"""
The alphabet: every instruction that a search may put into a candidate, over given registers and constants.

Each row of `ROWS` is a set of mnemonics with one operand shape. `docs/alphabet.md` is generated from it.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, product

from ruledb.cost import Latency, latency_of
from ruledb.machine.canonical import fixed_families, rename
from ruledb.machine.codec import CodecError, encode
from ruledb.machine.constant import Constant, Expression, Symbol
from ruledb.machine.instruction import Imm, Instruction, Mem
from ruledb.machine.registers import RBX, RCX, RSP, Register

__all__ = ["CONDITIONS", "ROWS", "Letter", "Row", "alphabet", "grammar"]

CONDITIONS = ("o", "no", "b", "ae", "e", "ne", "be", "a", "s", "ns", "l", "ge", "le", "g")
"""Condition codes; parity has too few uses to pay for its place."""


@dataclass(frozen=True, slots=True)
class Letter:
    """An instruction of the alphabet, its size with constants of eight bits, its time, and the families that it needs by name."""

    instruction: Instruction
    n_bytes: int
    time: Latency
    fixed: frozenset[int]


@dataclass(frozen=True, slots=True)
class Row:
    """*mnemonics* at *widths* with the operands that *shape* makes of families and constants."""

    mnemonics: tuple[str, ...]
    shape: str
    widths: tuple[int, ...] = (32, 64)


_SET = tuple(f"set{c}" for c in CONDITIONS)
_CMOV = tuple(f"cmov{c}" for c in CONDITIONS)

ROWS = (
    Row(("mov",), "r,other"),
    Row(("xor", "add", "sub", "and", "or", "adc", "sbb", "cmp", "test", "imul"), "r,r"),
    Row(("xchg",), "pair"),
    Row(("mov", "add", "sub", "and", "or", "xor", "adc", "sbb", "cmp"), "r,imm"),
    Row(("test",), "r,wide imm"),
    Row(("test",), "r,imm", (8,)),
    Row(("imul",), "r,r,wide imm"),
    Row(("neg", "not", "inc", "dec", "bswap"), "r"),
    Row(("shl", "shr", "sar", "rol"), "r,count"),
    Row(("ror",), "r,constant"),
    Row(("shl", "shr", "sar", "rol", "ror"), "r,cl"),
    Row(("lea",), "r,[r+imm]"),
    Row(("lea",), "r,[r+r*s]"),
    Row(("movzx", "movsx"), "r,r8"),
    Row(("movzx", "movsx"), "r,r16"),
    Row(("movsxd",), "r,r32", (64,)),
    Row(_SET, "r8", (8,)),
    Row(_CMOV, "r,other"),
    Row(("bt", "bts", "btr", "btc"), "r,r"),
    Row(("bt", "bts", "btr", "btc"), "r,constant"),
    Row(("bsf", "bsr"), "r,r"),
    Row(("cwde", "cdqe", "cdq", "cqo"), "", (64,)),
    Row(("clc", "stc", "cmc"), "", (64,)),
)
"""The rows of every search."""

DEEP_ROWS = (
    Row(("lea",), "r,[r+r*s+imm]"),
    Row(("mov", "add", "sub", "and", "or", "xor", "cmp"), "r,r", (8, 16)),
    Row(("and", "or", "xor", "add", "mov", "cmp"), "r,imm", (8,)),
    Row(("test",), "r,r", (8, 16)),
    Row(("cmp", "test"), "r,imm", (16,)),
    Row(("xchg",), "bytes", (8,)),
    Row(("mov", "or", "and", "xor", "add"), "high,imm", (8,)),
    Row(("movzx",), "r,high", (32,)),
    Row(("neg", "not", "inc", "dec"), "r", (8, 16)),
    Row(("shl", "shr", "sar", "rol"), "r,count", (8, 16)),
    Row(("shld", "shrd"), "r,r,count"),
    Row(("setp", "setnp"), "r8", (8,)),
    Row(("mul", "imul"), "r"),
)
"""More rows, for the search of a single target."""

Operands = Iterator[tuple[Register | Imm | Mem, ...]]


def _shapes(families: Sequence[int], constants: Sequence[Constant], width: int) -> dict[str, Callable[[], Operands]]:
    """Operand tuples by the name of a shape."""

    def r(family: int, n: int = width) -> Register:
        return Register(family, n)

    wide = [Imm(c) for c in constants if c not in (0, 1, -1)]
    imm = [Imm(c) for c in constants]
    high = [Register(f, 8, high=True) for f in families if f <= RBX]
    index = [f for f in families if f != RSP]
    plain = [c for c in constants if c != 0]
    return {
        "": lambda: iter([()]),
        "r": lambda: ((r(a),) for a in families),
        "r8": lambda: ((r(a, 8),) for a in families),
        "r,r": lambda: ((r(a), r(b)) for a, b in product(families, repeat=2)),
        "r,other": lambda: ((r(a), r(b)) for a, b in product(families, repeat=2) if a != b),
        "pair": lambda: ((r(a), r(b)) for a, b in combinations(families, 2)),
        "bytes": lambda: ((r(a, 8), Register(a, 8, high=True)) for a in families if a <= RBX),
        "high,imm": lambda: ((a, i) for a in high for i in imm),
        "r,high": lambda: ((r(a), b) for a in families for b in high),
        "r,imm": lambda: ((r(a), i) for a in families for i in imm),
        "r,wide imm": lambda: ((r(a), i) for a in families for i in wide),
        "r,count": lambda: ((r(a), i) for a in families for i in (Imm(1), *wide)),
        "r,constant": lambda: ((r(a), i) for a in families for i in wide),
        "r,cl": lambda: ((r(a), Register(RCX, 8)) for a in families if RCX in families),
        "r,r,wide imm": lambda: ((r(a), r(b), i) for a, b in product(families, repeat=2) for i in wide),
        "r,r,count": lambda: ((r(a), r(b), i) for a, b in product(families, repeat=2) if a != b for i in (Imm(1), *wide)),
        "r,[r+imm]": lambda: ((r(a), Mem(r(b, 64), None, 1, c)) for a, b in product(families, repeat=2) for c in plain),
        "r,[r+r*s]": lambda: (
            (r(a), Mem(r(b, 64), r(i, 64), s))
            for a, b in product(families, repeat=2)
            for i in index
            for s in (1, 2, 4, 8)
            if s > 1 or i >= b
        ),
        "r,[r+r*s+imm]": lambda: (
            (r(a), Mem(r(b, 64) if b is not None else None, r(i, 64), s, c))
            for a in families
            for b in (*families, None)
            for i in index
            for s in (1, 2, 4, 8)
            for c in (plain if b is not None else (0, *plain))
            if b is None or s > 1 or i >= b
        ),
        "r,r8": lambda: ((r(a), r(b, 8)) for a, b in product(families, repeat=2)),
        "r,r16": lambda: ((r(a), r(b, 16)) for a, b in product(families, repeat=2)),
        "r,r32": lambda: ((r(a), r(b, 32)) for a, b in product(families, repeat=2)),
    }


def _small(constant: Constant) -> int:
    return constant if isinstance(constant, int) else 29


def _letter(instruction: Instruction) -> Letter | None:
    """The letter of *instruction*, or None where no encoding exists."""
    (sized,) = rename((instruction,), lambda r: r, _small)
    try:
        n_bytes = len(encode(sized))
    except CodecError:
        return None
    return Letter(instruction, n_bytes, latency_of(instruction), fixed_families((instruction,)) - {RSP})


def alphabet(families: Sequence[int], constants: Sequence[Constant], rows: Sequence[Row] = ROWS) -> tuple[Letter, ...]:
    """
    All letters over *families* and *constants*, shortest first.

    *families* are hardware families: a letter with cl, or with rax and rdx implied, exists where they are among them.
    """
    letters: dict[Instruction, Letter] = {}
    for row in rows:
        for width in row.widths:
            for operands in _shapes(families, constants, width)[row.shape]():
                for mnemonic in row.mnemonics:
                    letter = _letter(Instruction(mnemonic, operands))
                    if letter is not None and letter.fixed <= set(families):
                        letters.setdefault(letter.instruction, letter)
    return tuple(sorted(letters.values(), key=lambda x: (x.n_bytes, x.time)))


def grammar(symbols: int) -> tuple[Constant, ...]:
    """Replacement constants over *symbols* symbols: 0, 1, -1, ci, -ci, ~ci, ci±1, ci±cj."""
    each = [Symbol(i) for i in range(symbols)]
    single = [c for s in each for c in (s, Expression("-", (s,)), Expression("~", (s,)), Expression("+", (s, 1)), Expression("+", (s, -1)))]
    sums = [Expression("+", pair) for pair in combinations(each, 2)]
    differences = [Expression("+", (a, Expression("-", (b,)))) for a, b in product(each, repeat=2) if a != b]
    return (0, 1, -1, *single, *sums, *differences)
