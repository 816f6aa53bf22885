"""What the processor itself does where emulator and manual leave doubt; skipped on other hosts."""

import ctypes
import mmap
import platform

import pytest

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="runs x86-64 code on the host")

_PRELUDE = bytes.fromhex("4889f8 31c9")  # mov rax, rdi; xor ecx, ecx
_OLD = 0xDEADBEEF12345678


def _rax_after(code: str) -> int:
    """Rax after *code* started with the old value in rax and 0 in rcx."""
    page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(_PRELUDE + bytes.fromhex(code) + b"\xc3")
    view = ctypes.c_char.from_buffer(page)
    function = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_uint64)(ctypes.addressof(view))
    result = function(_OLD)
    del function, view
    page.close()
    return result


@pytest.mark.parametrize("code", ["0fbcc1", "0fbdc1", "480fbcc1", "660fbcc1"], ids=["bsf eax", "bsr eax", "bsf rax", "bsf ax"])
def test_scan_of_zero_keeps_the_whole_register(code):
    """A scan of 0 leaves all 64 bits of the destination, for a 32-bit destination too."""
    assert _rax_after(code) == _OLD


@pytest.mark.parametrize(
    "code", ["d3e0", "c1e000", "d3c0", "c1c000", "0fa5c8", "0fa4c800"], ids=["shl cl", "shl 0", "rol cl", "rol 0", "shld cl", "shld 0"]
)
def test_count_zero_clears_the_upper_half(code):
    """A 32-bit shift, rotate or double shift by 0 clears bits 63..32."""
    assert _rax_after(code) == _OLD & 0xFFFFFFFF
