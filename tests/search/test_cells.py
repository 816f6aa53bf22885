"""Windows with memory become windows over cells, and what is found for these is written back to where it means the same."""

import pytest
from asm import mask, seq
from hypothesis import given
from hypothesis import strategies as st

from ruledb.machine.canonical import canonicalise
from ruledb.machine.instruction import parse_sequence, sequence_text
from ruledb.machine.registers import RAX, RBX, RCX, Register, mask_text
from ruledb.machine.states import directed_states
from ruledb.search.addresses import Sum, Values, as_operand
from ruledb.search.cells import accessed, celled
from ruledb.search.evaluate import Evaluator


def form(text):
    """The form over cells of a window."""
    return celled(canonicalise(seq(text)).instructions)


@pytest.mark.parametrize(
    ("window", "expected"),
    [
        ("mov eax, dword ptr [rbp-8]; add eax, ecx", "mov r0d, r1d; add r0d, r2d"),
        ("lea rax, [rbx+8]; mov edx, dword ptr [rax]", "lea r0, [r1+c0]; mov r2d, r3d"),
        ("mov dword ptr [rbp-8], eax; mov ecx, dword ptr [rbp-8]", "mov r0d, r1d; mov r2d, r0d"),
        ("mov dword ptr [rbp-8], eax; mov ecx, dword ptr [rbp-4]", "mov r0d, r1d; mov r2d, r3d"),
        ("add rax, 8; mov ecx, dword ptr [rax]; mov edx, dword ptr [rax]", "add r0, c0; mov r1d, r2d; mov r3d, r2d"),
        ("mov rax, qword ptr [rsp+8]; mov eax, dword ptr [rax]", "mov r0, r1; mov r0d, r2d"),
        ("lea rax, [rip+0x1000]; mov ecx, dword ptr [rax+8]", "mov r0, c0; mov r1d, r2d"),
        ("movzx eax, byte ptr [rbx]; mov byte ptr [rbx], cl", "movzx r0d, r1b; mov r1b, r2b"),
        ("cmp eax, ecx; jl somewhere", "cmp r0d, r1d; setl r2b"),
        ("cmp dword ptr [rbp-8], 0; jne somewhere", "cmp r0d, 0; setne r1b"),
    ],
)
def test_places_become_registers(window, expected):
    """Equal addresses are one register, others are registers of their own; what only addresses is gone."""
    assert form(window).canonical.text == expected


@pytest.mark.parametrize(
    "window",
    [
        "push rax; pop rbx",
        "mov qword ptr [rbx], rax; mov dword ptr [rbx], ecx",
        "mov eax, dword ptr [ebx]",
        "div dword ptr [rbx]",
        "mov dword ptr fs:[0x28], eax",
        "movbe eax, dword ptr [rbx]",
    ],
)
def test_what_registers_cannot_show_is_left_alone(window):
    """Implicit accesses, half-written cells, addresses of 32 bits, traps, segments: no form."""
    try:
        assert form(window) is None
    except ValueError:
        assert "fs" in window or "ebx" in window


@pytest.mark.parametrize(
    ("window", "candidate", "expected"),
    [
        ("lea rax, [rbx+8]; mov edx, dword ptr [rax]", "mov r2d, r3d", {"mov r2d, dword ptr [r1+c0]"}),
        ("add rax, rcx; movzx eax, byte ptr [rax]", "movzx r0d, r2b", {"movzx r0d, byte ptr [r0+r1*1]"}),
        ("lea rax, [rax*4]; add rax, rbx; mov edx, dword ptr [rax]", "mov r2d, r3d", {"mov r2d, dword ptr [r1+r0*4]"}),
        ("add rax, rcx; movzx eax, byte ptr [rax]", "add r0, r1; movzx r0d, r2b", {"add r0, r1; movzx r0d, byte ptr [r0]"}),
        ("mov eax, dword ptr [rbp-8]; add eax, 1; mov dword ptr [rbp-8], eax", "add r1d, 1", {"add dword ptr [r1+c0], 1"}),
        ("lea rax, [rip+0x1000]; mov ecx, dword ptr [rax+8]", "mov r1d, r2d", {"mov r1d, dword ptr [rip+(c0 + c1)]"}),
        ("lea rax, [rip+0x1000]; mov rcx, rax", "mov r1, c0", {"lea r1, [rip+c0]"}),
        ("cmp eax, ecx; setl al; movzx eax, al; test eax, eax; jne far", "cmp r0d, r1d; setl r2b", {"cmp r0d, r1d; jl L"}),
        ("mov eax, dword ptr [rbp-8]; test eax, eax; je far", "cmp r1d, 0; sete r2b", {"cmp dword ptr [r1+c0], 0; je L"}),
    ],
)
def test_candidates_are_written_with_the_addresses_of_the_window(window, candidate, expected):
    """A cell is the operand that addresses it where it is used, by what registers hold there."""
    assert {sequence_text(s) for s in form(window).back(parse_sequence(candidate))} == expected


@pytest.mark.parametrize(
    ("window", "candidate"),
    [
        ("mov eax, dword ptr [rbx]; mov ecx, dword ptr [rbx+4]", "add r0d, r1d; add r1d, r3d"),  # two cells at once
        ("mov eax, dword ptr [rbx]; mov ecx, eax", "mov r2, r1"),  # wider than the cell
        ("mov eax, dword ptr [rbx]; mov ecx, eax", "xchg r1d, r2d"),  # locks the bus
        ("mov eax, dword ptr [rbx]; mov ecx, eax", "lea r2d, [r1+r1*1]"),  # a cell is no part of an address
        ("mov eax, dword ptr [rax]; mov ecx, eax", "mov r0d, r0d; mov r0d, r1d"),  # the base is gone
        ("lea rax, [rip+0x1000]; mov rcx, rax", "add r1, c0"),  # no instruction adds such an address
        ("mov ax, word ptr [rbx]; mov cx, ax", "mov r2b, r1h"),  # a byte inside a cell
        ("test eax, eax; je far", "test r0d, r0d"),  # no jump
        ("test eax, eax; je far", "sete r1b; test r0d, r0d"),  # not at the end
        ("test eax, eax; je far", "mov r1b, r0b"),  # no condition
        ("test eax, eax; je far", "sete r1b; setne r1b"),  # two of them
    ],
)
def test_what_no_operand_says_is_no_candidate(window, candidate):
    """Nothing is written back that would access another place, or has no encoding."""
    found = form(window)
    names = {f"r{k}" for k in range(len(found.canonical.families))}
    assert {w[:2] for w in candidate.replace("[", " ").replace(",", " ").replace("+", " ").split() if w[0] == "r"} <= names | {"r3"}
    assert list(found.back(parse_sequence(candidate))) == []


def test_a_written_cell_is_live_as_far_as_it_reaches():
    """A store's lanes must agree; a cell that is only read is not asked about."""
    found = form("mov eax, dword ptr [rbx]; mov word ptr [rcx], ax")
    assert mask_text(found.live(mask("r0"))) == "r0 r2w"


registers = st.sampled_from(["rax", "rbx", "rcx"])
steps = st.one_of(
    st.tuples(st.just("add"), registers, registers),
    st.tuples(st.just("sub"), registers, registers),
    st.tuples(st.just("mov"), registers, registers),
    st.tuples(st.just("add"), registers, st.integers(-128, 127).map(str)),
    st.tuples(
        st.just("lea"),
        registers,
        st.builds("[{}+{}*{}+{}]".format, registers, registers, st.sampled_from([1, 2, 4, 8]), st.integers(0, 99)),
    ),
    st.tuples(st.just("imul"), registers, registers),
    st.tuples(st.just("movsxd"), registers, st.sampled_from(["eax", "ebx", "ecx"])),
)


@given(st.lists(steps, max_size=5), st.lists(steps, max_size=5), st.integers(0, 2**64 - 1))
def test_equal_sums_are_equal_addresses(library, first, second, seed):
    """Two windows that leave the same sum in a register leave the same value there, from any state."""
    sides = [seq("; ".join(f"{m} {a}, {b}" for m, a, b in side)) for side in (first, second)]
    states = directed_states(3, (), 32, [seed % 1000])
    results, sums = [], []
    for side in sides:
        values = Values()
        for instruction in side:
            values.step(instruction)
        sums.append(values.register(Register(RAX, 64)))
        results.append(Evaluator(library, (RAX, RBX, RCX)).run(side, states)[0][0])
    if sums[0] == sums[1]:
        assert (results[0] == results[1]).all()


@given(st.dictionaries(st.integers(16, 19), st.integers(-1, 9), max_size=2), st.integers(-(2**31), 2**31 - 1))
def test_an_operand_addresses_its_sum(terms, number):
    """What is written for a sum is that sum, read back."""
    total = Sum.of(terms, number)
    operand = as_operand(total)
    assert operand is None or Values().address(operand) == total


def test_stores_end_what_a_load_is_like():
    """Behind a store, a load may give another value than the same load before it."""
    window = canonicalise(
        seq("mov rax, qword ptr [rbx]; mov qword ptr [rcx], rdx; mov rdx, qword ptr [rbx]; mov eax, dword ptr [rdx]")
    ).instructions
    values = Values()
    for instruction in window[:3]:
        values.step(instruction)
    places = accessed(window)
    assert places[0] == places[2]
    assert values.register(window[0].operands[0]) != values.register(window[2].operands[0])
