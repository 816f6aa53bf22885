"""Canonical forms: equal code has equal text, and comes back by binding."""

import random

import pytest
from asm import code, mask, seq
from hypothesis import given
from hypothesis import strategies as st

from ruledb.machine.canonical import (
    LITERALS,
    MAX_REGISTERS,
    bind,
    canonicalise,
    domains,
    example_families,
    families_in,
    fixed_families,
    rename,
    to_canonical_mask,
    touched_mask,
)
from ruledb.machine.codec import encode
from ruledb.machine.instruction import Label, sequence_text
from ruledb.machine.registers import N_HARDWARE, RAX, RBP, RBX, RCX, RDX, RSP, Register, family_mask, mask_text

PIECES = (
    "mov {a}, {b}", "add {a}, {i}", "xor {a}, {a}", "lea {a}, [{b}+{c}*4+{i}]", "imul {a}, {b}, {i}", "shl {a}, cl", "cdq", "mul {a}",
    "mov {a}, {p} ptr [{b}+{i}]", "add {p} ptr [{b}+{c}*8], {a}", "mov {p} ptr [{b}], {i}", "push {b}", "movzx {a}, {bb}", "sete {ab}", "cmovl {a}, {c}", "shld {a}, {b}, {n}", "and {ab}, {n}", "sub rsp, {n}", "test {a}, {i}", "cqo",
)  # fmt: skip
FREE = tuple(f for f in range(N_HARDWARE) if f not in (RAX, RCX, RDX, RSP))
IMMEDIATES = st.integers(-128, 127)


@st.composite
def windows(draw):
    """Windows of one to five instructions, on registers that nothing names implicitly, and on those."""
    pieces = draw(st.lists(st.sampled_from(PIECES), min_size=1, max_size=5))
    text = []
    for piece in pieces:
        width = draw(st.sampled_from((32, 64)))
        names = draw(st.lists(st.sampled_from((*FREE[:4], RAX, RCX)), min_size=3, max_size=3))
        slots = {key: str(Register(f, width)) for key, f in zip("abc", names, strict=True)}
        slots |= {f"{key}b": str(Register(f, 8)) for key, f in zip("abc", names, strict=True)}
        slots["p"] = {32: "dword", 64: "qword"}[width]
        if "[" in piece or "push" in piece:
            slots |= {key: str(Register(f, 64)) for key, f in zip("bc", names[1:], strict=True)}
        text.append(piece.format(**slots, i=draw(IMMEDIATES), n=draw(st.integers(1, 31))))
    return seq("; ".join(text).replace("+-", "-"))


@given(windows(), st.booleans())
def test_the_canonical_form_is_its_own(window, literal):
    """A canonical form's canonical form is itself."""
    canonical = canonicalise(window, literal=literal)
    assert canonicalise(canonical.instructions, literal=literal).instructions == canonical.instructions


@given(windows(), st.booleans())
def test_binding_undoes_it(window, literal):
    """Families and constants lead back to the window."""
    canonical = canonicalise(window, literal=literal)
    assert bind(canonical.instructions, canonical.families, canonical.constants) == window


@given(windows(), st.randoms(use_true_random=False))
def test_renaming_registers_changes_nothing(window, rng: random.Random):
    """Windows that differ in the names of registers that nothing implies have one text."""
    free = [f for f in range(N_HARDWARE) if f not in fixed_families(window)]
    shuffled = free.copy()
    rng.shuffle(shuffled)
    to = dict(zip(free, shuffled, strict=True))
    other = rename(window, lambda r: Register(to.get(r.family, r.family), r.width), lambda c: c)
    assert canonicalise(other).text == canonicalise(window).text


@given(windows(), st.integers(2, 1000))
def test_changing_constants_changes_nothing(window, step):
    """Windows whose constants differ, equal where equal, have one symbolic text; their literal texts differ."""
    other = rename(window, lambda r: r, lambda c: c if c in LITERALS else c * 2000 + step)
    assert canonicalise(other).text == canonicalise(window).text
    if canonicalise(window).constants:
        assert canonicalise(other, literal=True).text != canonicalise(window, literal=True).text


@given(windows(), st.data())
def test_a_part_of_a_canonical_form_is_known_by_the_part(window, data):
    """Parts of a window and of its canonical form have one canonical form, where the same registers are implied."""
    start = data.draw(st.integers(0, len(window) - 1))
    end = data.draw(st.integers(start + 1, len(window)))
    canonical = canonicalise(window)
    part = canonicalise(window[start:end])
    inner = canonicalise(canonical.instructions[start:end])
    assert inner.text == part.text
    assert len(inner.families) == len(part.families)
    assert domains(inner.instructions) == domains(part.instructions)


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("mov ebx, ecx; add rcx, rbx", "mov r0d, r1d; add r1, r0"),
        ("mov esi, 5; add edi, 5; sub edi, 6", "mov r0d, c0; add r1d, c0; sub r1d, c1"),
        ("add eax, 1; and eax, -1; or eax, 0; xor eax, 2", "add r0d, 1; and r0d, -1; or r0d, 0; xor r0d, c0"),
        ("shl ebx, cl; mov ecx, eax", "shl r0d, cl; mov ecx, r1d"),
        ("mov ecx, eax", "mov r0d, r1d"),
        ("cdq; add eax, edx", "cdq; add eax, edx"),
        ("mul ebx; mov ecx, edx", "mul r0d; mov r1d, edx"),
        ("imul ebx; mov edx, 1", "imul r0d; mov edx, 1"),
        ("imul ebx, edx", "imul r0d, r1d"),
        ("lea rax, [rsp+8]", "lea r0, [rsp+c0]"),
        ("mov ah, bl", "mov r0h, r1b"),
        ("shl ebx, 3", "shl r0d, c0"),
        ("mov dword ptr [rbp-8], eax; mov ecx, dword ptr [rbp-8]", "mov dword ptr [r0+c0], r1d; mov r2d, dword ptr [r0+c0]"),
        ("mov qword ptr [rbx+rcx*8+16], 16", "mov qword ptr [r0+r1*8+c0], c0"),
        ("mov al, byte ptr [rbx]; mov ah, byte ptr [rbx+1]", "mov r0b, byte ptr [r1]; mov r0h, byte ptr [r1+1]"),
        ("push rbx; pop rbp", "push r0; pop r1"),
        ("mov rbp, rsp; leave", "mov rbp, rsp; leave"),
        ("mov eax, dword ptr [rip+0x40]; mov dword ptr [rip+0x40], 0x40", "mov r0d, dword ptr [rip+c0]; mov dword ptr [rip+c0], c1"),
        ("cmpxchg dword ptr [rbx], ecx; mov eax, ebx", "cmpxchg dword ptr [r0], r1d; mov eax, r0d"),
        ("mulx rax, rbx, rcx; mov rsi, rdx", "mulx r0, r1, r2; mov r3, rdx"),
        ("test ebx, ebx; jne 0x4010", "test r0d, r0d; jne L"),
    ],
)
def test_examples(text, canonical):
    """Names go by first appearance; implied registers and rsp keep theirs; 0, 1 and -1 stay, equal constants share."""
    assert canonicalise(seq(text)).text == canonical


def test_the_literal_form_keeps_its_constants():
    """Only registers are renamed."""
    assert canonicalise(seq("shl ebx, 3; add ebx, 1"), literal=True).text == "shl r0d, 3; add r0d, 1"


def test_the_literal_form_keeps_no_address():
    """Where a program is loaded nobody knows: a rip-relative address is a symbol even where constants stay, other addresses are not."""
    literal = canonicalise(seq("lea rax, [rip+1]; add rax, 8; mov ecx, dword ptr [rax+0x4000]"), literal=True)
    assert literal.text == "lea r0, [rip+c0]; add r0, 8; mov r1d, dword ptr [r0+0x4000]"
    assert literal.constants == (1,)


def test_a_jump_comes_back_with_its_target():
    """Binding puts the target of a closing jump back."""
    window = seq("cmp ebx, 5; jle 0x401234")
    canonical = canonicalise(window)
    assert canonical.target == Label("0x401234")
    assert bind(canonical.instructions, canonical.families, canonical.constants, canonical.target) == window


def test_a_window_with_too_many_registers_has_no_form():
    """Nine registers are one more than there are names."""
    nine = seq("; ".join(f"inc {Register(f, 32)}" for f in range(8, 8 + MAX_REGISTERS)) + "; inc ebx")
    assert len(families_in(nine)) == MAX_REGISTERS + 1
    assert canonicalise(nine) is None


@pytest.mark.parametrize(
    ("text", "bits"),
    [
        ("mov r0, c0", (64,)),
        ("mov r0d, c0", (32,)),
        ("add r0, c0", (32,)),
        ("add r0b, c0", (8,)),
        ("shl r0, c0", (8,)),
        ("bt r0, c0", (8,)),
        ("mov r0, c0; add r0b, c0", (8,)),
        ("add r0, c0; shl r0, c1", (32, 8)),
        ("lea r0, [r0+c0]; mov r1w, c1", (32, 16)),
        ("mov r0, (c1 + c0)", (64, 64)),
        ("mov r0, qword ptr [r1+c0]", (32,)),
        ("mov qword ptr [r1+c0], c1", (32, 32)),
        ("mov r0d, dword ptr [rip+c0]; mov r1d, dword ptr [rip+c1]", (64, 64)),
        ("mov word ptr [r1+c0], c0", (16,)),
        ("push c0", (32,)),
        ("rorx r0, r1, c0", (8,)),
        ("mov r0, 1", ()),
    ],
)
def test_a_symbol_stands_for_what_its_narrowest_immediate_holds(text, bits):
    """The domain of a symbol is the least of its places."""
    assert domains(seq(text)) == bits


@given(windows())
def test_example_registers_are_free_and_encode(window):
    """Every canonical window has registers on which it encodes, none of them taken twice."""
    canonical = canonicalise(window)
    families = example_families(canonical.instructions)
    assert len(set(families)) == len(canonical.families)
    assert not set(families) & fixed_families(canonical.instructions)
    assert all(encode(i) for i in code(sequence_text(bind(canonical.instructions, families, (9,) * len(canonical.constants)))))


def test_masks_follow_the_names():
    """Live lanes of hardware registers are live lanes of their canonical names, flags stay, the rest is left out."""
    canonical = canonicalise(seq("mov ebx, ecx; cdq"))
    live = to_canonical_mask(mask("bl rcx eax ZF rsi"), canonical, touched_mask(canonical.instructions) | mask("all"))
    assert mask_text(live) == "eax r0b r1 ZF"


def test_families_include_the_implied():
    """What an instruction uses without a word counts."""
    assert families_in(seq("push rbx")) == {RSP, RBX}
    assert families_in(seq("leave")) == {RSP, RBP}
    assert families_in(seq("mov eax, dword ptr [rbx+rcx*2]")) == {RAX, RBX, RCX}
    assert families_in(seq("mul ebx")) == {RAX, RDX, RBX}
    assert families_in(seq("shl ebx, cl")) == {RCX, RBX}
    assert touched_mask(seq("cdqe")) == family_mask(RAX)
