"""What code costs: accesses to memory, and chains of results."""

import pytest
from asm import code

from ruledb.cost import n_accesses, size_of, time_of


@pytest.mark.parametrize(
    ("text", "accesses"),
    [
        ("mov eax, ebx", 0), ("lea rax, [rbx+8]", 0), ("nop dword ptr [rax]", 0), ("mov eax, dword ptr [rbx]", 1), ("mov dword ptr [rbx], eax", 1),
        ("add eax, dword ptr [rbx]", 1), ("add dword ptr [rbx], eax", 2), ("cmp dword ptr [rbx], 0", 1), ("inc byte ptr [rbx]", 2),
        ("sete byte ptr [rbx]", 1), ("push rax", 1), ("pop rax", 1), ("push qword ptr [rbx]", 2), ("pop qword ptr [rbx]", 2), ("leave", 1),
        ("mul dword ptr [rbx]", 1), ("shl dword ptr [rbx], 1", 2), ("xadd dword ptr [rbx], eax", 2), ("movbe dword ptr [rbx], eax", 1),
    ],
)  # fmt: skip
def test_loads_and_stores_are_counted(text, accesses):
    """An operand that is read and written is two accesses; what only computes an address is none."""
    (instruction,) = code(text)
    assert n_accesses(instruction) == accesses


@pytest.mark.parametrize(
    ("dear", "cheap"),
    [
        ("mov eax, dword ptr [rbx]; add ecx, eax", "add ecx, dword ptr [rbx]"),
        ("mov eax, dword ptr [rbx]; add eax, 5; mov dword ptr [rbx], eax", "add dword ptr [rbx], 5"),
        ("push rax; pop rcx", "mov rcx, rax"),
        ("lea rax, [rbp+8]; mov ecx, dword ptr [rax]", "mov ecx, dword ptr [rbp+8]"),
        ("mov eax, ebx; shl eax, cl", "shlx eax, ebx, ecx"),
    ],
)
def test_what_saves_an_instruction_or_an_access_is_cheaper(dear, cheap):
    """Folding an access or an address costs less time."""
    one, other = (time_of(side, size_of(side)[0]) for side in (code(dear), code(cheap)))
    assert other < one


def test_chains_follow_what_is_read():
    """A result of several instructions waits for all it is made from; what only overwrites its destination waits for its source alone."""
    assert time_of(code("imul rax, rbx; mulx rcx, rsi, rdi; add rsi, rax"), 0)[1] == 5
    assert time_of(code("imul rdx, rbx; mulx rcx, rsi, rdi; add rcx, rsi"), 0)[1] == 8
    assert time_of(code("imul rax, rbx; popcnt rax, rcx"), 0)[1] == 3
