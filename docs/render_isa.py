"""
Print `docs/isa.md`: every modelled form, from the table in `ruledb.semantics.forms` and the terms behind it.

    python docs/render_isa.py > docs/isa.md
"""

from collections import defaultdict
from collections.abc import Iterator

from pysmt.environment import Environment

from ruledb.machine.instruction import Imm, Instruction, Label, Mem, Operand
from ruledb.machine.registers import FLAGS, Register
from ruledb.semantics.form_line import Form, Slot
from ruledb.semantics.forms import FORMS, Bound, bind
from ruledb.semantics.terms import Effect, Output, Terms

_HEAD = """\
# The modelled instructions

Every form that has semantics; anything else is a barrier, which no window contains. Generated from the table in
`ruledb/semantics/forms.py` and from the terms of each form; `python docs/render_isa.py > docs/isa.md` makes it anew, and a
test fails when this page is stale.

Before an operand stands its access: `r` read, `w` written, `rw` both. Kinds: `r` a register of the form's width and `r8`, `r16`,
`r32` one of that width, `m` memory likewise, `imm` an immediate, `imm8` its low 8 bits, `cl` the register, `mem` the address of
lea. In brackets stand operands that the text does not name: `acc` and `data` are rax and rdx at the form's width, `half` is rax at
half of it, and `1` the number.

*Written* flags get a defined value in every execution. Those that *may stay* keep their old value in some (a count of zero), and
*undefined* or *may be undefined* is what the manual leaves open always or in some executions.
"""

_RBX, _RCX = 3, 1
_SAMPLES = {"imm": Imm(5), "imm8": Imm(5), "cl": Register(_RCX, 8), "label": Label("there")}
_Row = tuple[str, str, str, str, str, str, str]


def _sample(kind: str, width: int) -> Operand:
    """An operand of *kind*."""
    if kind in _SAMPLES:
        return _SAMPLES[kind]
    bits = int(kind[1:]) if kind[1:].isdigit() else width
    return Register(_RBX, bits) if kind[0] == "r" else Mem(Register(_RBX, 64), width=0 if kind == "mem" else bits)


def _bound(form: Form, width: int) -> Bound:
    """*form* at *width*, with operands of the first kind of each slot."""
    return bind(Instruction(form.mnemonic, tuple(_sample(slot.kinds[0], width) for slot in form.explicit)))


def _effect(t: Terms, bound: Bound) -> Effect:
    pairs = zip(bound.form.slots, bound.widths, strict=True)
    operands = [t.const(1, 8) if slot.kinds == ("1",) else t.symbol(f"o{i}", width) for i, (slot, width) in enumerate(pairs) if slot.reads]
    return bound.form.semantics(t, *operands, *(t.symbol(name, 1) for name in bound.form.reads))


def _may_stay(t: Terms, output: Output) -> bool:
    return output.written is not None and output.written is not t.const(1, 1)


def _kind_of(t: Terms, output: Output) -> str:
    """What the terms say of a flag: written, may stay, undefined, may be undefined."""
    if output.defined is not None and output.defined is not t.const(1, 1):
        return "undefined" if output.defined is t.const(0, 1) else "may be undefined"
    return "may stay" if _may_stay(t, output) else "written"


def _flags(form: Form, width: int) -> tuple[str, str, str, str]:
    t, by_kind = Terms(Environment()), defaultdict(list)
    effect = _effect(t, _bound(form, width))
    for name in FLAGS:
        if name in effect.flags:
            output = effect.flags[name]
            by_kind[_kind_of(t, output)].append(name)
            if _may_stay(t, output) and name not in by_kind["may stay"]:
                by_kind["may stay"].append(name)
    return tuple(" ".join(by_kind[kind]) for kind in ("written", "may stay", "undefined", "may be undefined"))


def _slot_text(slot: Slot) -> str:
    access = "r" * slot.reads + "w" * slot.writes
    return f"{access} {' or '.join(slot.kinds)}"


def _operands(form: Form) -> str:
    explicit = [_slot_text(slot) for slot in form.explicit]
    return ", ".join([*explicit, *(f"({_slot_text(slot)})" for slot in form.implicit)]) or "none"


def _rows() -> Iterator[tuple[_Row, str, int]]:
    """What a line of the page says, and the mnemonic and width that it says it of."""
    for mnemonic, forms in FORMS.items():
        for form in forms:
            march = form.needs or "x86-64"
            for width in form.widths:
                yield (_operands(form), " ".join(form.reads), *_flags(form, width), march), mnemonic, width


def _lines() -> Iterator[str]:
    widths: dict[tuple[str, _Row], list[int]] = defaultdict(list)
    for row, mnemonic, width in _rows():
        widths[mnemonic, row].append(width)
    mnemonics: dict[tuple[tuple[int, ...], _Row], list[str]] = defaultdict(list)
    for (mnemonic, row), found in widths.items():
        mnemonics[tuple(found), row].append(mnemonic)
    for (found, (operands, *rest)), names in mnemonics.items():
        yield f"| {' | '.join([' '.join(names), operands, ', '.join(map(str, found)), *(cell or '-' for cell in rest)])} |"


def page() -> str:
    """The text of the page."""
    n_forms = sum(len(form.widths) for forms in FORMS.values() for form in forms)
    return "\n".join(
        [
            _HEAD,
            f"{len(FORMS)} mnemonics, {n_forms} lines of operands and width.\n",
            "| mnemonics | operands | widths | flags read | written | may stay | undefined | may be undefined | march |",
            "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
            *_lines(),
            "",
        ]
    )


if __name__ == "__main__":
    print(page(), end="")
