"""The keep-list: what stands there for a reason that data flow does not tell."""

import pytest

from ruledb.machine.blocks import Block
from ruledb.machine.codec import decode, encode_at
from ruledb.machine.instruction import parse_sequence
from ruledb.machine.keep import has_marker, kept

START = 0x1000
REQUEST = "rol rdi, 3; rol rdi, 13; rol rdi, 61; rol rdi, 51; xchg rbx, rbx"


def block_of(*pieces, function=0):
    """A block of texts and bytes."""
    code = b"".join(p if isinstance(p, bytes) else b"".join(encode_at(i, START) for i in parse_sequence(p)) for p in pieces)
    return Block(START, function, tuple(decode(code, START)), ())


@pytest.mark.parametrize("clearing", ["xor eax, eax", "mov eax, 0", "sub eax, eax"])
def test_scrubbing_the_secret_is_kept(clearing):
    """Clearing a register behind the stack protector's store keeps the secret out of it."""
    block = block_of(f"mov rax, fs:[0x28]; mov [rsp+8], rax; {clearing}; inc ecx")
    assert kept(block) == {2}


def test_scrubbing_is_kept_with_others_between():
    """The scheduler may put unrelated instructions between store and scrub."""
    assert kept(block_of("mov rdx, fs:[0x28]; mov [rsp+8], rdx; inc ecx; xor edx, edx")) == {3}


def test_clearing_another_register_is_not_kept():
    """Only the register with the secret matters, and only while it holds it."""
    assert kept(block_of("mov rax, fs:[0x28]; mov [rsp+8], rax; xor edx, edx")) == frozenset()
    assert kept(block_of("mov rax, fs:[0x28]; mov [rsp+8], rax; mov rax, rcx; xor eax, eax")) == frozenset()


@pytest.mark.parametrize(
    "slow", ["tzcnt eax, edx", "lzcnt eax, edx", "popcnt eax, edx", "bsf eax, edx", "bsr rax, rdx", bytes.fromhex("f20f2cc1")]
)
def test_breaking_a_false_dependency_is_kept(slow):
    """Clearing a destination right before an instruction that waits for its old value is for speed."""
    assert kept(block_of("inc ecx; xor eax, eax", slow)) == {1}


def test_a_dependency_that_is_none_is_not_kept():
    """Neither another register nor a use of the cleared one makes the clearing an idiom."""
    assert kept(block_of("xor ecx, ecx; popcnt eax, edx")) == frozenset()
    assert kept(block_of("xor eax, eax; mov ecx, eax; popcnt eax, edx")) == frozenset()
    assert kept(block_of("xor eax, eax; popcnt eax, eax")) == frozenset()


def test_a_client_request_is_kept_and_marks():
    """Valgrind's preamble with the exchange behind it stays whole, and marks its block."""
    block = block_of(f"inc ecx; {REQUEST}; neg edx")
    assert kept(block) == {1, 2, 3, 4, 5}
    assert has_marker(block)
    assert not has_marker(block_of("rol rdi, 3; rol rdi, 13"))


def test_a_simulator_mark_is_kept_and_marks():
    """`fs addr32 nop` is no filler: its number is in ebx."""
    block = block_of("mov ebx, 111", bytes.fromhex("646790"))
    assert kept(block) == {1}
    assert has_marker(block)


@pytest.mark.parametrize("piece", [bytes.fromhex("6687db"), "or qword ptr [rsp], 0", "or dword ptr [rsp+0x1000], 0", "lea rsp, [rsp]"])
def test_lone_idioms_are_kept(piece):
    """Breakpoints of emulators, probes of the stack and room for hot patches stay."""
    assert kept(block_of("inc ecx", piece)) == {1}


@pytest.mark.parametrize("code", [b"\x8b\xff", b"\x89\xff"])
def test_room_for_a_patch_is_kept_at_an_entry_only(code):
    """`mov edi, edi` is a hot-patch point as a function's first instruction; elsewhere it clears bits 63..32."""
    assert kept(block_of(code, "inc ecx", function=START)) == {0}
    assert kept(block_of(code, "inc ecx")) == frozenset()


def test_ordinary_code_has_nothing_to_keep():
    """Clearing a register and then writing it partly is ordinary code."""
    assert kept(block_of("xor eax, eax; cmp ecx, edx; setb al; or ecx, 0")) == frozenset()
