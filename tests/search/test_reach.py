"""What is not searched is never taken for a computation on registers alone."""

import pytest
from asm import code, seq

from ruledb.harvester import is_usable
from ruledb.search.kernels import form_of
from ruledb.search.reach import SEARCHED, unsearched
from ruledb.semantics.symbolic import UnmodelledForm

BEYOND = [
    "mov eax, dword ptr [rbx]", "mov dword ptr [rbx], eax", "add dword ptr [rbx], 1", "push rax", "pop rax", "leave", "div ecx", "lea rax, [rip+0x4000]",
    "popcnt eax, ebx",
]  # fmt: skip


@pytest.mark.parametrize("text", BEYOND)
def test_windows_hold_nothing_that_is_not_searched(text):
    """The harvest leaves alone what has a feature that the search does not know."""
    (instruction,) = code(text)
    assert unsearched(instruction)
    assert not is_usable(instruction)
    assert is_usable(code("add eax, ebx")[0])
    assert not SEARCHED


@pytest.mark.parametrize("text", ["mov eax, dword ptr [rbx]", "mov dword ptr [rbx], eax", "push rax", "div ecx", "jne L"])
def test_kernels_refuse_what_goes_beyond_registers(library, text):
    """No kernel drops an access, a trap or a jump in silence."""
    (instruction,) = seq(text)
    with pytest.raises(UnmodelledForm, match="registers and flags alone"):
        library.kernels([form_of(instruction)])
