"""Instructions as values and as text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ruledb.machine.constant import Expression, Symbol
from ruledb.machine.instruction import (
    Imm,
    Instruction,
    Label,
    Mem,
    Other,
    SyntaxProblem,
    constants_of,
    parse_instruction,
    parse_sequence,
    registers_of,
    sequence_text,
    symbols_of,
)
from ruledb.machine.registers import N_FAMILIES, Register

REGISTERS = st.builds(Register, st.integers(0, N_FAMILIES - 1), st.sampled_from((8, 16, 32, 64)))
WHOLE = st.builds(Register, st.integers(0, N_FAMILIES - 1), st.just(64))
SYMBOLS = st.builds(Symbol, st.integers(0, 3))
CONSTANTS = st.one_of(
    st.integers(-(1 << 31), (1 << 31) - 1),
    SYMBOLS,
    st.builds(lambda s: Expression("-", (s,)), SYMBOLS),
    st.builds(lambda s: Expression("~", (s,)), SYMBOLS),
    st.builds(lambda s, n: Expression("+", (s, n)), SYMBOLS, st.sampled_from((1, -1, 77))),
    st.builds(lambda a, b: Expression("+", (a, Expression("-", (b,)))), SYMBOLS, SYMBOLS),
    st.builds(lambda s: Expression("log2", (s,)), SYMBOLS),
    st.builds(lambda a, b: Expression("-", (Expression("*", (a, b)),)), SYMBOLS, SYMBOLS),
)
WIDTHS = st.sampled_from((8, 16, 32, 64))
MEMORIES = st.one_of(
    st.builds(Mem, WHOLE, st.none(), st.just(1), CONSTANTS, WIDTHS),
    st.builds(Mem, st.none() | WHOLE, WHOLE, st.sampled_from((1, 2, 4, 8)), CONSTANTS, WIDTHS),
    st.builds(Mem, st.none(), st.none(), st.just(1), st.integers(1, 1 << 30), WIDTHS),
    st.builds(lambda d, w: Mem(None, None, 1, d, w, rip=True), st.integers(0, 1 << 40), WIDTHS),
)
OPERANDS = st.one_of(REGISTERS, st.builds(Imm, CONSTANTS), MEMORIES, st.sampled_from((Other("xmm3"), Other("fs"))))
INSTRUCTIONS = st.builds(
    lambda mnemonic, operands: Instruction(mnemonic, tuple(operands)),
    st.sampled_from(("add", "mov", "imul", "shl")),
    st.lists(OPERANDS, max_size=3),
)


@given(st.lists(INSTRUCTIONS, max_size=4))
def test_texts_read_back(instructions):
    """The text of a sequence reads back to an equal sequence."""
    assert parse_sequence(sequence_text(instructions)) == tuple(instructions)


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("ADD EAX , 0x10", "add eax, 16"),
        ("setz al", "sete al"),
        ("cmovnbe eax, ebx", "cmova eax, ebx"),
        ("jnz there", "jne there"),
        ("sal eax, 3", "shl eax, 3"),
        ("movabs rax, 5", "mov rax, 5"),
        ("lea eax, dword ptr [rbx+rcx*2-8]", "lea eax, [rbx+rcx*2-8]"),
        ("mov eax, DWORD PTR [4*rcx+rbx]", "mov eax, dword ptr [rbx+rcx*4]"),
        ("mov al, byte ptr fs:[rax]", "mov al, byte ptr fs:[rax+0]"),
        ("lea rax, [rbx + rcx]", "lea rax, [rbx+rcx*1]"),
        ("mov r8l, 1", "mov r8b, 1"),
    ],
)
def test_spellings_of_one_instruction_are_equal(text, same):
    """Case, synonyms, blanks and orders that mean nothing leave no trace."""
    assert parse_instruction(text) == parse_instruction(same)


def test_a_sequence_has_lines_semicolons_and_comments():
    """Lines and semicolons part instructions; a comment ends with its line; empty pieces are none."""
    text = "mov eax, 1; inc eax # c1; dec eax\n\n neg eax ;;"
    assert sequence_text(parse_sequence(text)) == "mov eax, 1; inc eax; neg eax"


def test_a_jump_has_a_label():
    """The target of a jump is opaque, whatever it looks like."""
    assert parse_instruction("jne 0x401000").operands == (Label("0x401000"),)


@pytest.mark.parametrize(
    "text",
    [
        "add eax,",
        "add eax, , 1",
        "mov eax, foo",
        "lea rax, [rax+rbx+rcx]",
        "lea rax, [rax-rbx]",
        "lea rax, [rax",
        "lea rax, [rax+rbx*3]",
        "lea rax, [rax*2+rbx*2]",
        "add! eax, 1",
        "mov eax, [rax]]",
        "lea rax, []",
        "lea rax, [rax+rbx*rcx]",
    ],
)
def test_what_is_no_instruction_is_refused(text):
    """A broken text raises one error that shows it."""
    with pytest.raises(SyntaxProblem, match=r"\S"):
        parse_instruction(text)


def test_constants_and_registers_of_operands():
    """Immediates and displacements are constants, bases and indices registers, symbols are found in expressions."""
    sequence = parse_sequence("lea r0, [r1+r2*4+c1]; add r0, (c0 + -c2)")
    assert len(list(constants_of(sequence))) == 2
    assert symbols_of(sequence) == {0, 1, 2}
    assert {str(r) for r in registers_of(sequence[0].operands[1])} == {"r1", "r2"}
