"""Blocks look alike where nothing else in the program can tell them apart."""

import pytest

from ruledb.machine.blocks import Block
from ruledb.machine.codec import decode, encode
from ruledb.machine.instruction import parse_sequence
from ruledb.machine.likeness import looks_alike


def block_of(text, n_bytes=40, end="ret"):
    """The instructions of *text*, NOPs, and at *n_bytes* the *end*."""
    code = b"".join(map(encode, parse_sequence(text)))
    code = code.ljust(n_bytes, b"\x90") + b"".join(map(encode, parse_sequence(end)))
    return Block(0x1000, 0x1000, tuple(decode(code, 0x1000)), ())


@pytest.mark.parametrize(
    ("old", "new"),
    [("mov ecx, eax; mov edx, ecx", "mov edx, eax; mov ecx, eax"), ("or eax, eax", "and eax, eax"), ("add ecx, 2", "sub ecx, -2")],
)
def test_equal_effects_look_alike(old, new):
    """The same reads and writes, and nothing else that is seen: alike."""
    assert looks_alike(block_of(old), block_of(new))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("add ecx, 1", "inc ecx"),  # leaves CF
        ("mov ecx, eax; mov edx, ecx", "mov edx, eax"),
        ("mov ecx, 5", "mov ecx, 0x401000"),
        ("push rax; pop rcx", "pop rcx; push rax"),
        ("mov [rdi], rax", "mov [rsp], rax"),
        ("lea rax, [rip+0x2000]", "lea rax, [rip+0x3000]"),
        ("mov [rdi], rax", "mov [rdi+8], rax"),
    ],
)
def test_what_is_seen_elsewhere_tells_apart(old, new):
    """Other reads or writes, addresses, stores or changes of the stack: not alike."""
    assert not looks_alike(block_of(old), block_of(new))


def test_moved_ends_tell_apart():
    """A return at another place leaves other bytes behind it."""
    assert not looks_alike(block_of("mov ecx, eax"), block_of("mov ecx, eax", 39))
