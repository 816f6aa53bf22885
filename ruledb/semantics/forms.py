"""
The table of modelled forms: one line per mnemonic and operand shape, in the manual's vocabulary.

A line names the operands (access and kind), the widths, the semantics function and the flags it reads, writes and may
leave undefined, as letters. The semantics function gets the operands that are read, in order, then the flags
that are read; its effect lists the operands that are written, in order. A line that contradicts itself or
another one raises at import.

Everything that is not in the table is a barrier with a name (`barrier`).
"""

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ruledb.machine.instruction import Imm, Instruction, Label, Mem, Operand, Other
from ruledb.machine.registers import RAX, RCX, RDX, Register
from ruledb.semantics import arith, bitwise, control, move, shift
from ruledb.semantics.terms import Effect

__all__ = ["FLAG_LETTERS", "FORMS", "Bound", "Form", "Slot", "UnmodelledForm", "barrier", "bind"]

FLAG_LETTERS = {"O": "OF", "S": "SF", "Z": "ZF", "A": "AF", "P": "PF", "C": "CF"}


class UnmodelledForm(ValueError):
    """An instruction has no row in the table; the message names it and the reason."""


@dataclass(frozen=True, slots=True)
class Slot:
    """
    One operand of a form.

    Kinds: ``r`` a register of the form's width, ``r8`` ``r16`` ``r32`` one of that width, ``imm`` an immediate seen at the
    form's width, ``imm8`` its low 8 bits, ``cl``, ``mem`` the address of lea. Implicit: ``acc`` and ``data``, rax and
    rdx at the form's width; ``half``, rax at half of it; ``al``, ``ax``; ``1``, the number.
    """

    kinds: tuple[str, ...]
    reads: bool
    writes: bool


@dataclass(frozen=True, slots=True)
class Form:
    """One line of the table; fields as in the module's docstring, flags by their names."""

    mnemonic: str
    explicit: tuple[Slot, ...]
    implicit: tuple[Slot, ...]
    widths: tuple[int, ...]
    semantics: Callable[..., Effect]
    reads: tuple[str, ...]
    writes: frozenset[str]
    undefined: frozenset[str]

    @property
    def slots(self) -> tuple[Slot, ...]:
        """All operands, implicit ones last."""
        return self.explicit + self.implicit


@dataclass(frozen=True, slots=True)
class Bound:
    """A form with the operands of one instruction: *operands* fit `Form.slots`, *widths* are the bits seen of each."""

    form: Form
    operands: tuple[Operand, ...]
    widths: tuple[int, ...]


_EXPLICIT = {"r", "r8", "r16", "r32", "imm", "imm8", "cl", "mem"}
_IMPLICIT = {"acc", "data", "half", "al", "ax", "1"}
_ACCESS = {"r": (True, False), "w": (False, True), "rw": (True, True)}


def _slots(text: str, allowed: set[str]) -> tuple[Slot, ...]:
    slots = []
    for word in filter(None, (w.strip() for w in text.split(","))):
        access, _, kinds = word.partition(" ")
        slot = Slot(tuple(kinds.split("|")), *_ACCESS[access])
        if not set(slot.kinds) <= allowed:
            raise ValueError(f"operand {word!r}: kinds {sorted(set(slot.kinds) - allowed)}, expected some of {sorted(allowed)}")
        if slot.writes and set(slot.kinds) & {"imm", "imm8", "mem", "1"}:
            raise ValueError(f"operand {word!r}: cannot be written")
        slots.append(slot)
    return tuple(slots)


def _form(
    mnemonic: str,
    operands: str,
    widths: tuple[int, ...],
    semantics: Callable[..., Effect],
    *,
    implicit: str = "",
    reads: str = "",
    writes: str = "",
    undefined: str = "",
) -> Form:
    explicit, hidden = _slots(operands, _EXPLICIT), _slots(implicit, _IMPLICIT)
    if not set(undefined) <= set(writes):
        raise ValueError(f"{mnemonic}: flags {undefined!r} undefined but only {writes!r} written")
    if not widths or not set(widths) <= {8, 16, 32, 64}:
        raise ValueError(f"{mnemonic}: widths {widths}, expected some of 8, 16, 32, 64")
    n_arguments = sum(s.reads for s in explicit + hidden) + len(reads)
    parameters = tuple(inspect.signature(semantics).parameters.values())[1:]
    is_variadic = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    if not is_variadic and len(parameters) != n_arguments:
        raise ValueError(f"{mnemonic} {operands}: {semantics.__name__} takes {len(parameters)} terms, the line gives {n_arguments}")
    named = tuple(FLAG_LETTERS[letter] for letter in reads)
    return Form(
        mnemonic, explicit, hidden, widths, semantics, named, *(frozenset(FLAG_LETTERS[f] for f in fs) for fs in (writes, undefined))
    )


_ALL = (8, 16, 32, 64)
_WORDS = (16, 32, 64)


def _lines() -> Iterator[Form]:
    # SDM vol. 2, "Instruction Set Reference"; register and immediate operands only.
    yield _form("mov", "w r, r r|imm", _ALL, move.mov)
    for width in _WORDS:
        yield _form("movzx", "w r, r r8", (width,), move.zero_extend(width))
        yield _form("movsx", "w r, r r8", (width,), move.sign_extend(width))
        yield _form("lea", "w r, r mem", (width,), move.lea(width))
    for width in (32, 64):
        yield _form("movzx", "w r, r r16", (width,), move.zero_extend(width))
        yield _form("movsx", "w r, r r16", (width,), move.sign_extend(width))
        yield _form("bswap", "rw r", (width,), bitwise.bswap)
    yield _form("movsxd", "w r, r r32", (64,), move.sign_extend(64))
    yield _form("xchg", "rw r, rw r", _ALL, move.xchg)
    for mnemonic, width in (("cbw", 16), ("cwde", 32), ("cdqe", 64)):
        yield _form(mnemonic, "", (width,), move.sign_extend(width), implicit="w acc, r half")
    for mnemonic, width in (("cwd", 16), ("cdq", 32), ("cqo", 64)):
        yield _form(mnemonic, "", (width,), move.sign_spread, implicit="w data, r acc")

    yield _form("add", "rw r, r r|imm", _ALL, arith.add, writes="OSZAPC")
    yield _form("sub", "rw r, r r|imm", _ALL, arith.sub, writes="OSZAPC")
    yield _form("adc", "rw r, r r|imm", _ALL, arith.adc, reads="C", writes="OSZAPC")
    yield _form("sbb", "rw r, r r|imm", _ALL, arith.sbb, reads="C", writes="OSZAPC")
    yield _form("cmp", "r r, r r|imm", _ALL, arith.cmp, writes="OSZAPC")
    yield _form("inc", "rw r", _ALL, arith.inc, writes="OSZAP")
    yield _form("dec", "rw r", _ALL, arith.dec, writes="OSZAP")
    yield _form("neg", "rw r", _ALL, arith.neg, writes="OSZAPC")
    yield _form("mul", "r r", (8,), arith.mul_byte, implicit="w ax, r al", writes="OSZAPC", undefined="SZAP")
    yield _form("mul", "r r", _WORDS, arith.mul, implicit="w data, rw acc", writes="OSZAPC", undefined="SZAP")
    yield _form("imul", "r r", (8,), arith.imul_byte, implicit="w ax, r al", writes="OSZAPC", undefined="SZAP")
    yield _form("imul", "r r", _WORDS, arith.imul_wide, implicit="w data, rw acc", writes="OSZAPC", undefined="SZAP")
    yield _form("imul", "rw r, r r", _WORDS, arith.imul, writes="OSZAPC", undefined="SZAP")
    yield _form("imul", "w r, r r, r imm", _WORDS, arith.imul, writes="OSZAPC", undefined="SZAP")

    yield _form("and", "rw r, r r|imm", _ALL, bitwise.and_, writes="OSZAPC", undefined="A")
    yield _form("or", "rw r, r r|imm", _ALL, bitwise.or_, writes="OSZAPC", undefined="A")
    yield _form("xor", "rw r, r r|imm", _ALL, bitwise.xor, writes="OSZAPC", undefined="A")
    yield _form("test", "r r, r r|imm", _ALL, bitwise.test, writes="OSZAPC", undefined="A")
    yield _form("not", "rw r", _ALL, bitwise.not_)
    yield _form("bt", "r r, r r|imm8", _WORDS, bitwise.bt, writes="OSAPC", undefined="OSAP")
    yield _form("bts", "rw r, r r|imm8", _WORDS, bitwise.bts, writes="OSAPC", undefined="OSAP")
    yield _form("btr", "rw r, r r|imm8", _WORDS, bitwise.btr, writes="OSAPC", undefined="OSAP")
    yield _form("btc", "rw r, r r|imm8", _WORDS, bitwise.btc, writes="OSAPC", undefined="OSAP")
    yield _form("bsf", "w r, r r", _WORDS, bitwise.bsf, writes="OSZAPC", undefined="OSAPC")
    yield _form("bsr", "w r, r r", _WORDS, bitwise.bsr, writes="OSZAPC", undefined="OSAPC")

    # without a count: the encoding D1, which shifts by 1
    for operands, implicit in (("rw r, r cl|imm8", ""), ("rw r", "r 1")):
        yield _form("shl", operands, _ALL, shift.shl, implicit=implicit, writes="OSZAPC", undefined="OAC")
        yield _form("shr", operands, _ALL, shift.shr, implicit=implicit, writes="OSZAPC", undefined="OAC")
        yield _form("sar", operands, _ALL, shift.sar, implicit=implicit, writes="OSZAPC", undefined="OA")
        yield _form("rol", operands, _ALL, shift.rol, implicit=implicit, writes="OC", undefined="O")
        yield _form("ror", operands, _ALL, shift.ror, implicit=implicit, writes="OC", undefined="O")
    yield _form("shld", "rw r, r r, r cl|imm8", _WORDS, shift.shld, writes="OSZAPC", undefined="OSZAPC")
    yield _form("shrd", "rw r, r r, r cl|imm8", _WORDS, shift.shrd, writes="OSZAPC", undefined="OSZAPC")

    for code, (flags, condition) in control.CONDITIONS.items():
        yield _form(f"set{code}", "w r", (8,), control.setcc(condition), reads=flags)
        yield _form(f"cmov{code}", "rw r, r r", _WORDS, move.cmov(condition), reads=flags)
    yield _form("clc", "", _ALL[:1], control.clc, writes="C")
    yield _form("stc", "", _ALL[:1], control.stc, writes="C")
    yield _form("cmc", "", _ALL[:1], control.cmc, reads="C", writes="C")
    yield _form("nop", "", _ALL[:1], control.nop)


def _table() -> dict[str, tuple[Form, ...]]:
    table: dict[str, tuple[Form, ...]] = {}
    seen: set[tuple[str, tuple[str, ...], int]] = set()
    for form in _lines():
        for width in form.widths:
            shapes: list[tuple[str, ...]] = [()]
            for slot in form.explicit:
                shapes = [(*shape, kind) for shape in shapes for kind in slot.kinds]
            for shape in shapes:
                if (form.mnemonic, shape, width) in seen:
                    raise ValueError(f"{form.mnemonic} {shape} at {width} bits: two lines")
                seen.add((form.mnemonic, shape, width))
        table[form.mnemonic] = (*table.get(form.mnemonic, ()), form)
    return table


FORMS = _table()
"""Mnemonic → its forms."""


def _is_plain_address(mem: Mem) -> bool:
    """Whether lea's operand is modelled: 64-bit general registers, no rip, no segment."""
    return not mem.rip and not mem.segment and all(r is None or (r.width == 64 and not r.high) for r in (mem.base, mem.index))


def _seen(kind: str, operand: Operand, width: int) -> int:
    """The bits of *operand* that an operand of this kind sees; 0 where it does not fit."""
    match operand:
        case Register():
            wanted = {"r": width, "r8": 8, "r16": 16, "r32": 32}.get(kind, 0)
            fits = operand.width == wanted or (kind == "cl" and operand == Register(RCX, 8))
            return operand.width if fits else 0
        case Imm():
            return {"imm": width, "imm8": 8}.get(kind, 0)
        case Mem():
            return 64 if kind == "mem" and _is_plain_address(operand) else 0
        case _:
            return 0


def _implicit(kind: str, width: int) -> tuple[Operand, int]:
    if kind == "1":
        return Imm(1), 8
    family, bits = {"acc": (RAX, width), "data": (RDX, width), "half": (RAX, width // 2), "al": (RAX, 8), "ax": (RAX, 16)}[kind]
    return Register(family, bits), bits


def _fit(form: Form, width: int, operands: tuple[Operand, ...]) -> Bound | None:
    if len(operands) != len(form.explicit):
        return None
    seen = tuple(max(_seen(kind, o, width) for kind in slot.kinds) for slot, o in zip(form.explicit, operands, strict=True))
    if not all(seen):
        return None
    hidden = [_implicit(slot.kinds[0], width) for slot in form.implicit]
    return Bound(form, operands + tuple(o for o, _ in hidden), seen + tuple(w for _, w in hidden))


def _find(instruction: Instruction) -> Bound | None:
    operands = () if instruction.mnemonic == "nop" else instruction.operands  # a multi-byte nop's operand is never read
    forms = FORMS.get(instruction.mnemonic, ())
    return next((b for form in forms for width in form.widths if (b := _fit(form, width, operands)) is not None), None)


def bind(instruction: Instruction) -> Bound:
    """
    The form of *instruction*, with its operands.

    Raises:
        UnmodelledForm: The table has none.

    """
    bound = _find(instruction)
    if bound is None:
        raise UnmodelledForm(f"{instruction}: no modelled form ({barrier(instruction)})")
    return bound


_STACK = {"push", "pop", "leave", "enter", "pushf", "pushfd", "pushfq", "popf", "popfd", "popfq", "pusha", "popa"}
_PRIVILEGED = {
    "cli", "clts", "hlt", "in", "insb", "insd", "insw", "invd", "invlpg", "iret", "iretd", "iretq", "lgdt", "lidt", "lldt", "lmsw", "ltr",
    "mwait", "monitor", "out", "outsb", "outsd", "outsw", "rdmsr", "rdpmc", "sti", "swapgs", "sysexit", "sysret", "wbinvd", "wrmsr",
    "xsetbv",
}  # fmt: skip
_BY_PREFIX = (("lock ", "lock"), ("rep", "rep"), ("call", "call"), ("ret", "ret"), ("j", "branch"), ("loop", "branch"), ("f", "x87"))


def _named_other(name: str) -> str:
    if name.startswith("st"):
        return "x87"
    return "sse" if "mm" in name or name.startswith("k") else "privileged" if name[0] in "cd" and name[1] == "r" else "segment"


def barrier(instruction: Instruction) -> str | None:
    """
    Why no window may contain *instruction*; None where it is modelled.

    One of memory, rip, stack, branch, call, ret, lock, rep, sse, x87, segment, privileged, or ``unmodelled <mnemonic>``.
    """
    if _find(instruction) is not None:
        return None
    mnemonic, operands = instruction.mnemonic, instruction.operands
    for prefix, reason in _BY_PREFIX:
        if mnemonic.startswith(prefix):
            return reason
    if mnemonic in _STACK:
        return "stack"
    if mnemonic in _PRIVILEGED:
        return "privileged"
    others = [o for o in operands if isinstance(o, Other)]
    if others:
        return _named_other(others[0].name)
    if any(isinstance(o, Label) for o in operands):
        return "branch"
    memories = [o for o in operands if isinstance(o, Mem)]
    if any(m.rip for m in memories):
        return "rip"
    return "memory" if memories and mnemonic != "lea" else f"unmodelled {mnemonic}"
