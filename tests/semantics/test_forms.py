"""The table of forms: completeness, barriers, and lines that contradict themselves."""

import pytest

from ruledb.machine.instruction import parse_instruction
from ruledb.machine.registers import Register
from ruledb.semantics import arith, forms
from ruledb.semantics.control import CONDITIONS
from ruledb.semantics.forms import FORMS, UnmodelledForm, barrier, bind

_ALL, _WORDS = (8, 16, 32, 64), (16, 32, 64)


def _name(family: int, width: int) -> str:
    return str(Register(family, width))


def _modelled() -> list[str]:
    texts = [
        "cbw",
        "cwde",
        "cdqe",
        "cwd",
        "cdq",
        "cqo",
        "clc",
        "stc",
        "cmc",
        "nop",
        "nop dword ptr [rax+rax*1]",
        "nop ax",
        "movsxd rax, ebx",
    ]
    for w in _ALL:
        a, b = _name(0, w), _name(3, w)
        texts += [f"{m} {a}, {s}" for m in ["mov", "add", "adc", "sub", "sbb", "cmp", "and", "or", "xor", "test"] for s in (b, "c0", "5")]
        texts += [f"{m} {a}" for m in ["inc", "dec", "neg", "not", "mul", "imul"]] + [f"xchg {a}, {b}"]
        texts += [f"{m} {a}{count}" for m in ["shl", "shr", "sar", "rol", "ror"] for count in ("", ", cl", ", 3", ", c1")]
    for w in _WORDS:
        a, b = _name(0, w), _name(3, w)
        texts += [f"imul {a}, {b}", f"imul {a}, {b}, c0", f"bsf {a}, {b}", f"bsr {a}, {b}"]
        texts += [f"{m} {a}, {b}, {count}" for m in ("shld", "shrd") for count in ("cl", "7")]
        texts += [f"{m} {a}, {s}" for m in ("bt", "bts", "btr", "btc") for s in (b, "7")]
        texts += [f"{m} {a}, bl" for m in ("movzx", "movsx")] + [f"lea {a}, [rbx+rcx*4+c0]"]
        texts += [f"cmov{code} {a}, {b}" for code in CONDITIONS]
    for w in (32, 64):
        texts += [f"{m} {_name(0, w)}, bx" for m in ("movzx", "movsx")] + [f"bswap {_name(0, w)}"]
    return texts + [f"set{code} ah" for code in CONDITIONS]


def test_every_promised_form_is_modelled():
    """Each mnemonic of the list binds at each of its widths, with registers, immediates and symbols."""
    assert {text: barrier(parse_instruction(text)) for text in _modelled() if barrier(parse_instruction(text)) is not None} == {}


def test_the_table_holds_nothing_else():
    """Each mnemonic of the table is among the promised ones."""
    assert set(FORMS) == {parse_instruction(text).mnemonic for text in _modelled()}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("mov eax, [rbx]", "memory"), ("add [rbx], eax", "memory"), ("xchg rax, [rbx]", "memory"), ("mov rax, fs:[0]", "memory"),
        ("mov eax, [rip+0x10]", "rip"), ("lea rax, [rip+0x10]", "rip"), ("lea rax, [ebx+4]", "unmodelled lea"), ("lea rax, fs:[rbx]", "unmodelled lea"),
        ("push rax", "stack"), ("pop rbx", "stack"), ("leave", "stack"), ("enter 8, 0", "stack"), ("pushfq", "stack"),
        ("jmp 0x10", "branch"), ("jne 0x10", "branch"), ("loop 0x10", "branch"), ("call 0x10", "call"), ("ret", "ret"),
        ("lock add dword ptr [rax], 1", "lock"), ("rep movsb", "rep"), ("repne scasb", "rep"), ("movaps xmm0, xmm1", "sse"), ("movd mm0, eax", "sse"),
        ("fld st(1)", "x87"), ("hlt", "privileged"), ("mov cr0, rax", "privileged"), ("mov ds, ax", "segment"),
        ("cpuid", "unmodelled cpuid"), ("div ebx", "unmodelled div"), ("bswap ax", "unmodelled bswap"), ("bt al, 5", "unmodelled bt"),
        ("add eax, bx", "unmodelled add"), ("sete eax", "unmodelled sete"), ("shl eax, bl", "unmodelled shl"), ("cmove al, bl", "unmodelled cmove"),
    ],
)  # fmt: skip
def test_barriers_have_names(text, reason):
    """What is not modelled is a barrier with a short reason."""
    assert barrier(parse_instruction(text)) == reason


def test_unmodelled_form_names_the_instruction():
    """Binding an unmodelled instruction raises an error that names it and the reason."""
    with pytest.raises(UnmodelledForm, match=r"div ebx: .*unmodelled div"):
        bind(parse_instruction("div ebx"))


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (("add", "rw r, r r", (8,), arith.add), {"writes": "C", "undefined": "A"}, "undefined"),
        (("add", "rw r, w imm", (8,), arith.add), {}, "cannot be written"),
        (("add", "rw r, r xmm", (8,), arith.add), {}, "kinds"),
        (("add", "rw r, r r", (8, 128), arith.add), {}, "widths"),
        (("add", "rw r", (8,), arith.add), {}, "takes 2 terms, the line gives 1"),
        (("adc", "rw r, r r", (8,), arith.adc), {"writes": "C"}, "takes 3 terms"),
    ],
)
def test_contradictions_raise(arguments, options, message):
    """A line whose parts contradict each other raises when the table is built."""
    with pytest.raises(ValueError, match=message):
        forms._form(*arguments, **options)


def test_two_lines_for_one_shape_raise(monkeypatch):
    """Two lines with the same mnemonic, operand kinds and width raise."""
    line = forms._form("add", "rw r, r r", (8,), arith.add)
    monkeypatch.setattr(forms, "_lines", lambda: iter([line, line]))
    with pytest.raises(ValueError, match="two lines"):
        forms._table()
