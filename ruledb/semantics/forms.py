"""
The table of modelled forms, and which of them an instruction is.

Everything that is not in the table is a barrier with a name (`barrier`). A line that contradicts another one raises at import.
"""

from dataclasses import dataclass, replace
from functools import lru_cache

from ruledb.machine.constant import Constant, Expression, evaluate
from ruledb.machine.instruction import Imm, Instruction, Label, Mem, Operand, Other
from ruledb.machine.registers import RAX, RBP, RCX, RDX, RSP, Register
from ruledb.semantics.form_line import Form
from ruledb.semantics.form_table import lines

__all__ = ["FORMS", "Bound", "UnmodelledForm", "barrier", "bind", "features"]


class UnmodelledForm(ValueError):
    """An instruction has no row in the table; the message names it and the reason."""


@dataclass(frozen=True, slots=True)
class Bound:
    """A form with the operands of one instruction: *operands* fit `Form.slots`, *widths* are the bits seen of each."""

    form: Form
    operands: tuple[Operand, ...]
    widths: tuple[int, ...]


_MEMORY = frozenset({"m", "m8", "m16", "m32"})


def _table() -> dict[str, tuple[Form, ...]]:
    table: dict[str, tuple[Form, ...]] = {}
    seen: set[tuple[str, tuple[str, ...], int]] = set()
    for form in lines():
        for width in form.widths:
            shapes: list[tuple[str, ...]] = [()]
            for slot in form.explicit:
                shapes = [(*shape, kind) for shape in shapes for kind in slot.kinds if not ({kind} <= _MEMORY and _MEMORY & set(shape))]
            for shape in shapes:
                if (form.mnemonic, shape, width) in seen:
                    raise ValueError(f"{form.mnemonic} {shape} at {width} bits: two lines")
                seen.add((form.mnemonic, shape, width))
        table[form.mnemonic] = (*table.get(form.mnemonic, ()), form)
    return table


FORMS = _table()
"""Mnemonic → its forms."""


def _is_plain_address(mem: Mem) -> bool:
    """Whether an address is modelled: 64-bit general registers, no segment."""
    registers = [r for r in (mem.base, mem.index) if r is not None]
    return not mem.segment and all(r.width == 64 and not r.high for r in registers) and not (mem.rip and registers)


_WIDTHS = {"r8": 8, "m8": 8, "r16": 16, "m16": 16, "r32": 32, "m32": 32}


def _seen(kind: str, operand: Operand, width: int) -> int:
    """The bits of *operand* that an operand of this kind sees; 0 where it does not fit."""
    wanted = width if kind in ("r", "m") else _WIDTHS.get(kind, 0)
    match operand:
        case Register():
            fits = (kind[0] == "r" and operand.width == wanted) or (kind == "cl" and operand == Register(RCX, 8))
            return operand.width if fits else 0
        case Imm():
            return {"imm": width, "imm8": 8}.get(kind, 0)
        case Mem() if _is_plain_address(operand):
            fits = kind in _MEMORY and operand.width == wanted
            return 64 if kind == "mem" else wanted if fits else 0
        case Label():
            return 64 if kind == "label" else 0
        case _:
            return 0


def _implicit(kind: str, width: int) -> tuple[Operand, int]:
    match kind:
        case "1":
            return Imm(1), 8
        case "top":
            return Mem(Register(RSP, 64), width=width), width
        case "below":
            return Mem(Register(RSP, 64), displacement=-width // 8, width=width), width
        case "frame":
            return Mem(Register(RBP, 64), width=width), width
    family, bits = {
        "acc": (RAX, width), "data": (RDX, width), "half": (RAX, width // 2), "al": (RAX, 8), "ax": (RAX, 16),
        "sp": (RSP, 64), "bp": (RBP, 64),
    }[kind]  # fmt: skip
    return Register(family, bits), bits


def _plus(constant: Constant, number: int) -> Constant:
    whole = Expression("+", (constant, number))
    return evaluate(whole, ()) if isinstance(constant, int) else whole


def _popped_to(operand: Operand, width: int) -> Operand:
    """An operand of pop; its address is computed when rsp has gone up already. SDM vol. 2B, POP."""
    if isinstance(operand, Mem) and operand.base == Register(RSP, 64):
        return replace(operand, displacement=_plus(operand.displacement, width // 8))
    return operand


def _fit(form: Form, width: int, operands: tuple[Operand, ...]) -> Bound | None:
    if len(operands) != len(form.explicit) or sum(isinstance(o, Mem) for o in operands) > 1:
        return None
    seen = tuple(max(_seen(kind, o, width) for kind in slot.kinds) for slot, o in zip(form.explicit, operands, strict=True))
    if not all(seen):
        return None
    if form.mnemonic == "pop":
        operands = (_popped_to(operands[0], width),)
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


@lru_cache(maxsize=1 << 16)
def features(instruction: Instruction) -> frozenset[str]:
    """
    What a modelled *instruction* has beyond registers and flags: ``memory``, ``stack``, ``division``, ``branch``, ``rip``, and the
    processor's feature that it needs, such as ``bmi1``.

    Raises:
        UnmodelledForm: The table has no form for it.

    """
    bound = bind(instruction)
    accesses = [o for slot, o in zip(bound.form.slots, bound.operands, strict=True) if isinstance(o, Mem) and slot.kinds != ("mem",)]
    found = {bound.form.needs} - {""}
    found |= {"memory"} if accesses else set()
    found |= {"rip"} if any(isinstance(o, Mem) and o.rip for o in bound.operands) else set()
    found |= {"stack"} if any(slot.kinds == ("sp",) for slot in bound.form.implicit) else set()
    found |= {"division"} if instruction.mnemonic in ("div", "idiv") else set()
    found |= {"branch"} if any(isinstance(o, Label) for o in bound.operands) else set()
    return frozenset(found)


_STACK = {
    "push",
    "pushw",
    "pop",
    "leave",
    "leavew",
    "enter",
    "enterw",
    "pushf",
    "pushfd",
    "pushfq",
    "popf",
    "popfd",
    "popfq",
    "pusha",
    "popa",
}
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

    One of memory, stack, branch, call, ret, lock, rep, sse, x87, segment, privileged, or ``unmodelled <mnemonic>``.
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
    if any(m.segment for m in memories):
        return "segment"
    if memories and mnemonic == "xchg":
        return "lock"  # with memory, xchg locks the bus without a prefix (SDM vol. 3A, 9.1.2.1)
    return "memory" if memories and mnemonic in FORMS and mnemonic != "lea" else f"unmodelled {mnemonic}"
