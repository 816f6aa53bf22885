"""The table of forms: completeness, barriers, and lines that contradict themselves."""

import pytest

from ruledb.machine.instruction import parse_instruction
from ruledb.machine.registers import Register
from ruledb.semantics import arith, forms
from ruledb.semantics.control import CONDITIONS
from ruledb.semantics.form_line import line
from ruledb.semantics.forms import FORMS, UnmodelledForm, barrier, bind, features

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
    return texts + [f"set{code} ah" for code in CONDITIONS] + [f"j{code} L" for code in CONDITIONS] + _extended()


def _extended() -> list[str]:
    texts = ["push 5", "push c0", "leave", "push sp", "pop sp"]
    for w in _ALL:
        a, b = _name(0, w), _name(3, w)
        texts += [f"{m} {a}" for m in ("div", "idiv")] + [f"xadd {a}, {b}"] + [f"cmpxchg {a}, {b}"] * (w != 32)
    for w in _WORDS:
        texts += [f"{m} {_name(0, w)}, {_name(3, w)}" for m in ("popcnt", "lzcnt", "tzcnt")]
        texts += [f"movbe {_name(0, w)}, {_SIZES[w]} ptr [rbx]", f"movbe {_SIZES[w]} ptr [rbx], {_name(0, w)}"]
    for w in (32, 64):
        a, b, c = _name(0, w), _name(3, w), _name(1, w)
        texts += [f"{m} {a}, {b}" for m in ("blsi", "blsr", "blsmsk", "adcx", "adox")] + [f"rorx {a}, {b}, c0"]
        texts += [f"{m} {a}, {b}, {c}" for m in ("andn", "bextr", "bzhi", "pdep", "pext", "shlx", "shrx", "sarx", "mulx")]
    return [*texts, "push rax", "pop rax"]


_SIZES = {8: "byte", 16: "word", 32: "dword", 64: "qword"}


def _with_memory() -> list[str]:
    """Every integer form with a memory operand, by the operand's width."""
    texts = ["push qword ptr [rbx]", "pop qword ptr [rbx]", "movsxd rax, dword ptr [rbx]", "rorx eax, dword ptr [rbx], 3"]
    texts += [f"set{code} byte ptr [rbx]" for code in CONDITIONS]
    for w in _ALL:
        a, m = _name(0, w), f"{_SIZES[w]} ptr [rbx+rcx*4+c7]"
        texts += [f"{i} {m}, {s}" for i in ("mov", "add", "adc", "sub", "sbb", "cmp", "and", "or", "xor", "test") for s in (a, "5")]
        texts += [f"{i} {a}, {m}" for i in ("mov", "add", "adc", "sub", "sbb", "cmp", "and", "or", "xor")]
        texts += [f"{i} {m}" for i in ("inc", "dec", "neg", "not", "mul", "imul", "div", "idiv")]
        texts += [f"{i} {m}{count}" for i in ("shl", "shr", "sar", "rol", "ror") for count in ("", ", cl", ", 3")]
        texts += [f"{i} {m}, {a}" for i in ("xadd", "cmpxchg")]
    for w in _WORDS:
        a, m = _name(0, w), f"{_SIZES[w]} ptr [rip+0x40]"
        texts += [f"imul {a}, {m}", f"imul {a}, {m}, 5", f"movzx {a}, byte ptr [rbx]", f"movsx {a}, byte ptr [0x1000]"]
        texts += [f"{i} {a}, {m}" for i in ("bsf", "bsr", "popcnt", "lzcnt", "tzcnt", "cmovle", "movbe")] + [f"movbe {m}, {a}"]
        texts += [f"{i} {m}, 5" for i in ("bt", "bts", "btr", "btc")]
        texts += [f"{i} {m}, {a}, {count}" for i in ("shld", "shrd") for count in ("cl", "7")]
    for w in (32, 64):
        a, m = _name(0, w), f"{_SIZES[w]} ptr [rbx]"
        texts += [f"{i} {a}, {m}" for i in ("blsi", "blsr", "blsmsk", "adcx", "adox")]
        texts += [f"{i} {a}, {m}, {a}" for i in ("bextr", "bzhi", "shlx", "shrx", "sarx")]
        texts += [f"{i} {a}, {a}, {m}" for i in ("andn", "pdep", "pext", "mulx")]
    return texts


def test_every_form_with_memory_is_modelled():
    """Each integer form binds with a memory operand, at each width, and says that it accesses memory."""
    assert {text: barrier(parse_instruction(text)) for text in _with_memory() if barrier(parse_instruction(text)) is not None} == {}
    assert all("memory" in features(parse_instruction(text)) for text in _with_memory())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("add eax, ebx", ""), ("lea rax, [rbx+8]", ""), ("nop dword ptr [rax]", ""), ("lea rax, [rip+0x10]", "rip"), ("div ecx", "division"),
        ("popcnt eax, ebx", "popcnt"), ("pdep rax, rbx, qword ptr [rcx]", "bmi2 memory"), ("jne L", "branch"), ("push rax", "memory stack"),
        ("add dword ptr [rip+0x10], 1", "memory rip"), ("adox eax, ebx", "adx"),
    ],
)  # fmt: skip
def test_features_name_what_goes_beyond_registers(text, expected):
    """An instruction's features are its accesses, divisions and jumps, and what the processor must have."""
    assert features(parse_instruction(text)) == set(expected.split())


def test_every_promised_form_is_modelled():
    """Each mnemonic of the list binds at each of its widths, with registers, immediates and symbols."""
    assert {text: barrier(parse_instruction(text)) for text in _modelled() if barrier(parse_instruction(text)) is not None} == {}


def test_the_table_holds_nothing_else():
    """Each mnemonic of the table is among the promised ones."""
    assert set(FORMS) == {parse_instruction(text).mnemonic for text in _modelled()}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("mov eax, [rbx]", "memory"), ("mov eax, dword ptr [ebx]", "memory"), ("xchg rax, [rbx]", "lock"), ("xchg qword ptr [rbx], rax", "lock"),
        ("mov rax, fs:[0]", "segment"), ("bts dword ptr [rbx], eax", "memory"), ("mov dword ptr [rax], dword ptr [rbx]", "memory"),
        ("lea rax, [ebx+4]", "unmodelled lea"), ("lea rax, fs:[rbx]", "segment"), ("add dword ptr [rbx+rip], eax", "memory"),
        ("pushw 5", "stack"), ("leavew", "stack"), ("enter 8, 0", "stack"), ("pushfq", "stack"), ("push eax", "stack"),
        ("jmp 0x10", "branch"), ("jrcxz 0x10", "branch"), ("loop 0x10", "branch"), ("call 0x10", "call"), ("ret", "ret"),
        ("lock add dword ptr [rax], 1", "lock"), ("rep movsb", "rep"), ("repne scasb", "rep"), ("movaps xmm0, xmm1", "sse"), ("movd mm0, eax", "sse"),
        ("fld st(1)", "x87"), ("hlt", "privileged"), ("mov cr0, rax", "privileged"), ("mov ds, ax", "segment"),
        ("cpuid", "unmodelled cpuid"), ("crc32 eax, ebx", "unmodelled crc32"), ("bswap ax", "unmodelled bswap"), ("bt al, 5", "unmodelled bt"),
        ("add eax, bx", "unmodelled add"), ("sete eax", "unmodelled sete"), ("shl eax, bl", "unmodelled shl"), ("cmove al, bl", "unmodelled cmove"),
    ],
)  # fmt: skip
def test_barriers_have_names(text, reason):
    """What is not modelled is a barrier with a short reason."""
    assert barrier(parse_instruction(text)) == reason


def test_unmodelled_form_names_the_instruction():
    """Binding an unmodelled instruction raises an error that names it and the reason."""
    with pytest.raises(UnmodelledForm, match=r"cpuid: .*unmodelled cpuid"):
        bind(parse_instruction("cpuid"))


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
        line(*arguments, **options)


def test_two_lines_for_one_shape_raise(monkeypatch):
    """Two lines with the same mnemonic, operand kinds and width raise."""
    twice = line("add", "rw r, r r", (8,), arith.add)
    monkeypatch.setattr(forms, "lines", lambda: iter([twice, twice]))
    with pytest.raises(ValueError, match="two lines"):
        forms._table()
