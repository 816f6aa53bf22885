"""Windows: the runs of instructions that rules are learned from and applied to."""

import pytest

from ruledb.machine.blocks import Block
from ruledb.machine.codec import decode, encode_at
from ruledb.machine.instruction import parse_sequence
from ruledb.machine.window import runs, windows

START = 0x1000
NOP = bytes.fromhex("0f1f00")
ENDBR64 = bytes.fromhex("f30f1efa")


def code_of(text):
    """The bytes of *text*."""
    return b"".join(encode_at(i, START) for i in parse_sequence(text))


def block_of(*pieces):
    """A block of texts and bytes."""
    code = b"".join(p if isinstance(p, bytes) else code_of(p) for p in pieces)
    return Block(START, START, tuple(decode(code, START)), ())


def keys(block, longest, usable=None):
    """The windows of *block* as texts."""
    live = [0] * len(block.instructions)
    return ["; ".join(map(str, w.instructions)) for w in windows(block, live, longest, usable)]


def test_windows_are_all_runs_up_to_the_longest():
    """Each run of one to `longest` consecutive instructions is a window, once."""
    assert keys(block_of("mov eax, 1; inc ecx; neg edx"), 2) == [
        "mov eax, 1",
        "mov eax, 1; inc ecx",
        "inc ecx",
        "inc ecx; neg edx",
        "neg edx",
    ]


def test_a_window_tells_where_it_is_and_what_lives_behind():
    """Addresses are of the first byte and behind the last, live-out is that of the last instruction."""
    block = block_of("mov eax, 1; inc ecx; neg edx")
    found = list(windows(block, [1, 2, 4], 2))
    assert [(w.start, w.end, w.positions, w.live_out) for w in found[:3]] == [
        (0x1000, 0x1005, (0,), 1),
        (0x1000, 0x1007, (0, 1), 2),
        (0x1005, 0x1007, (1,), 2),
    ]


def test_filler_is_in_the_bytes_but_not_in_the_key():
    """A NOP between two instructions belongs to the window's range; it has no position and no instruction."""
    block = block_of("inc ecx", NOP, "neg edx")
    pair = next(w for w in windows(block, [0] * 3, 2) if len(w.positions) == 2)
    assert (pair.start, pair.end, pair.positions, pair.n_bytes) == (0x1000, 0x1007, (0, 2), 4)
    assert [str(i) for i in pair.instructions] == ["inc ecx", "neg edx"]


def test_no_window_starts_or_ends_with_filler():
    """NOPs at an entry (room for a patch) and at a block's end (alignment) are in no window."""
    block = block_of(NOP, NOP, "inc ecx", NOP)
    assert [(w.start, w.end) for w in windows(block, [0] * 4, 4)] == [(0x1006, 0x1008)]


@pytest.mark.parametrize(
    "barrier",
    [
        "call 0x1000", "jmp 0x1000", "je 0x1000", "ret", "syscall", "lock add [rax], ecx", bytes.fromhex("f3a4"),
        "mov rax, fs:[0x28]", "xchg [rax], ecx", ENDBR64, "hlt", "int3", "jmp rax",
    ],
)  # fmt: skip
def test_barriers_are_in_no_window(barrier):
    """Control flow, locks, repetition, segments and landing marks cut runs."""
    assert runs(block_of("inc ecx", barrier, "neg edx")) == ((0,), (2,))


def test_bytes_that_are_no_instruction_are_a_barrier():
    """What cannot be decoded is in no window."""
    assert runs(block_of("inc ecx", b"\x06")) == ((0,),)


def test_a_predicate_cuts_runs():
    """What `usable` declines is in no window; filler is not asked about."""
    block = block_of("inc ecx", NOP, "neg edx; not eax")
    assert keys(block, 3, lambda d: d.instruction.mnemonic != "not") == ["inc ecx", "inc ecx; neg edx", "neg edx"]


def test_what_is_kept_is_in_no_window():
    """An instruction of the keep-list cuts its run in two."""
    block = block_of("inc ecx; xor eax, eax; popcnt eax, edx; neg edx")
    assert runs(block) == ((0,), (2, 3))


def test_a_window_may_hold_memory():
    """Plain loads, stores, pushes and vector instructions are no barriers: what is modelled is another question."""
    assert runs(block_of("mov eax, [rcx]; push rax", bytes.fromhex("0f28c1"), "mov [rcx], eax")) == ((0, 1, 2, 3),)
