"""
How much of the code in ELF files has semantics, by form, and which mnemonics are missing most.

Counted is what stands in functions: the ranges of the frame table, and of sized symbols where it describes nothing. Left out of the
share is a fixed list of instructions that no window will contain; everything else counts, and `ruledb.semantics.forms`
alone says what is modelled.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ruledb.machine.codec import Decoded, Flow, decode, split, without_constants
from ruledb.machine.elf import load
from ruledb.machine.functions import functions
from ruledb.machine.instruction import Imm, Instruction, Label, Mem, Operand, Other
from ruledb.machine.registers import Register
from ruledb.semantics.forms import barrier

__all__ = ["EXCLUDED", "Coverage", "Missing", "cover", "form_text"]

_FLAG_MOVES = frozenset({"pushf", "pushfd", "pushfq", "popf", "popfd", "popfq", "lahf", "sahf"})
_FENCES = frozenset({"mfence", "lfence", "sfence"})
_VECTOR_STATE = frozenset({"emms", "vzeroupper", "vzeroall", "ldmxcsr", "stmxcsr", "vldmxcsr", "vstmxcsr"})
_VECTOR_BARRIERS = frozenset({"sse", "x87"})


@dataclass(frozen=True, slots=True)
class _Seen:
    """An encoding without its constants: decoded, its instruction, and why no window may contain it (None: it is modelled)."""

    decoded: Decoded
    instruction: Instruction
    barrier: str | None

    @property
    def mnemonic(self) -> str:
        return self.instruction.mnemonic


def _is_vector(seen: _Seen) -> bool:
    name = seen.mnemonic
    return name in _VECTOR_STATE or name.startswith(("fx", "xsave", "xrstor")) or seen.barrier in _VECTOR_BARRIERS


def _has_memory(instruction: Instruction) -> bool:
    return any(isinstance(o, Mem) for o in instruction.operands)


EXCLUDED: tuple[tuple[str, Callable[[_Seen], bool]], ...] = (
    ("nop", lambda s: s.decoded.is_nop),
    ("endbr64", lambda s: s.mnemonic == "endbr64"),
    ("call", lambda s: s.decoded.flow in (Flow.CALL, Flow.INDIRECT_CALL)),
    ("ret", lambda s: s.decoded.flow is Flow.RETURN),
    ("jmp", lambda s: s.decoded.flow in (Flow.JUMP, Flow.INDIRECT_JUMP)),
    ("syscall", lambda s: s.decoded.flow is Flow.SYSCALL),
    ("lock", lambda s: s.decoded.has_lock),
    ("xchg with memory", lambda s: s.mnemonic == "xchg" and _has_memory(s.instruction)),
    ("fence", lambda s: s.mnemonic in _FENCES),
    ("rep string", lambda s: s.decoded.has_rep),
    ("fs: or gs:", lambda s: bool(s.decoded.segment)),
    ("flags as a whole", lambda s: s.mnemonic in _FLAG_MOVES),
    ("privileged or I/O", lambda s: s.barrier == "privileged"),
    ("x87, MMX, SSE or AVX", _is_vector),
)
"""What the share leaves out: a reason, and what it holds for; the first that fits counts."""

_MODELLED, _MISSING = "modelled", "missing"


@dataclass(frozen=True, slots=True)
class Missing:
    """A mnemonic without semantics in some of its forms: how often in all, and each form's count, the most frequent first."""

    mnemonic: str
    count: int
    forms: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Coverage:
    """
    Counts over some files.

    Attributes:
        instructions: All that were decoded in functions.
        excluded: Reason of `EXCLUDED` → how many.
        modelled: How many of the others have semantics.
        windows: Neighbouring pairs of instructions within a function, and how many have semantics on both sides.
        missing: Mnemonics by count, the most frequent first.

    """

    instructions: int
    excluded: dict[str, int]
    modelled: int
    windows: tuple[int, int]
    missing: tuple[Missing, ...]

    @property
    def counted(self) -> int:
        """Instructions that the share is of."""
        return self.instructions - sum(self.excluded.values())

    @property
    def share(self) -> float:
        """The modelled part of what is counted; 1 where nothing is."""
        return self.modelled / self.counted if self.counted else 1.0


def _kind(operand: Operand) -> str:
    match operand:
        case Register(_, width):
            return f"r{width}"
        case Imm():
            return "imm"
        case Mem(width=width):
            return f"m{width or ''}"
        case Label():
            return "label"
        case Other(name):
            return name.rstrip("0123456789")


def form_text(instruction: Instruction) -> str:
    """Mnemonic and operand kinds: ``add m32, r32``."""
    return f"{instruction.mnemonic} {', '.join(map(_kind, instruction.operands))}".rstrip()


def _class_of(seen: _Seen) -> str:
    for reason, holds in EXCLUDED:
        if holds(seen):
            return reason
    return _MODELLED if seen.barrier is None else _MISSING


def _seen(code: bytes) -> _Seen:
    decoded = next(decode(code))
    return _Seen(decoded, decoded.instruction, barrier(decoded.instruction))


def cover(paths: Sequence[Path]) -> Coverage:
    """
    What is modelled of the functions in the files at *paths*.

    Instructions that differ only in constants are decoded and classified once, however often they stand in the code: what is modelled
    does not depend on those.

    Raises:
        ElfError: A file is no readable x86-64 ELF file.

    """
    numbers: dict[bytes, int] = {}
    runs = [
        [numbers.setdefault(code, len(numbers)) for code in split(image.read(function.start, function.end - function.start))]
        for image in map(load, paths)
        for function in functions(image)
    ]
    bare = [without_constants(code) for code in numbers]
    known = {code: _seen(code) for code in set(bare)}
    distinct = [known[code] for code in bare]
    classes = [_class_of(seen) for seen in distinct]
    sequence = np.fromiter((n for run in runs for n in run), dtype=np.int64)
    counts = np.bincount(sequence, minlength=len(distinct)).tolist()
    totals: Counter[str] = Counter()
    by_form: dict[str, Counter[str]] = {}
    for seen, name, count in zip(distinct, classes, counts, strict=True):
        totals[name] += count
        if name == _MISSING:
            by_form.setdefault(seen.mnemonic, Counter())[form_text(seen.instruction)] += count
    missing = [Missing(m, forms.total(), tuple(forms.most_common())) for m, forms in by_form.items()]
    excluded = {reason: totals[reason] for reason, _ in EXCLUDED if totals[reason]}
    windows = _pairs(
        sequence, np.array([len(run) for run in runs], dtype=np.int64), np.array([c == _MODELLED for c in classes], dtype=bool)
    )
    ranked = tuple(sorted(missing, key=lambda m: (-m.count, m.mnemonic)))
    return Coverage(len(sequence), excluded, totals[_MODELLED], windows, ranked)


def _pairs(sequence: np.ndarray, lengths: np.ndarray, is_modelled: np.ndarray) -> tuple[int, int]:
    """Pairs of neighbours within runs of *lengths*, and how many are modelled on both sides."""
    if not len(sequence):
        return 0, 0
    flags = is_modelled[sequence]
    ends = np.cumsum(lengths[lengths > 0]) - 1
    inside = np.ones(len(sequence), dtype=bool)
    inside[ends] = False
    return int(inside.sum()), int((flags[:-1] & flags[1:] & inside[:-1]).sum())
