"""What is not searched is never taken for a computation on registers alone."""

import pytest
from asm import code, seq

from ruledb.harvester import is_usable
from ruledb.search.kernels import form_of
from ruledb.search.reach import SEARCHED, unsearched
from ruledb.semantics.symbolic import UnmodelledForm

BEYOND = ["push rax", "pop rax", "leave", "div ecx", "div dword ptr [rbx]", "popcnt eax, ebx", "popcnt eax, dword ptr [rbx]"]


@pytest.mark.parametrize("text", BEYOND)
def test_windows_hold_nothing_that_is_not_searched(text):
    """The harvest leaves alone what has a feature that the search does not know."""
    (instruction,) = code(text)
    assert unsearched(instruction)
    assert not is_usable(instruction)
    assert {"memory", "rip", "branch"} == SEARCHED
    for known in ("add eax, ebx", "add eax, dword ptr [rbx]", "add dword ptr [rsp+8], 1", "lea rax, [rip+0x4000]", "jne L"):
        assert is_usable(seq(known)[0])


@pytest.mark.parametrize("text", ["add rsp, 8", "lea rax, [rsp+8]", "mov rsp, rbp", "mov qword ptr [rsp], rsp"])
def test_rsp_addresses_memory_and_nothing_else(text):
    """A window may address memory from rsp, but neither read nor write it otherwise."""
    assert not is_usable(code(text)[0])


@pytest.mark.parametrize("text", ["mov eax, dword ptr [rbx]", "mov dword ptr [rbx], eax", "push rax", "div ecx", "jne L"])
def test_kernels_refuse_what_goes_beyond_registers(library, text):
    """No kernel drops an access, a trap or a jump in silence."""
    (instruction,) = seq(text)
    with pytest.raises(UnmodelledForm, match="registers and flags alone"):
        library.kernels([form_of(instruction)])
