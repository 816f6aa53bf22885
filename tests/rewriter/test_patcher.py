"""The bytes of a replacement: what becomes of the room, and of a jump or return behind it."""

import pytest
from pieces import START, block_of, code_of, text_of
from sample_rules import RULES

from rewriter.matcher import RuleIndex
from rewriter.option import Candidate
from rewriter.patcher import apply, nops, patch
from ruledb.machine.codec import agrees, decode
from ruledb.machine.elf import load
from ruledb.machine.window import windows


def patched(text):
    """The block of *text* with its first sample rewrite, everything dead, and the bytes in place of the old ones."""
    block, index = block_of(text), RuleIndex(RULES)
    found = (index.match(w) for w in windows(block, [0] * len(block.instructions), index.longest, index.usable))
    new, (edit,) = patch(block, [next(c for c in found if isinstance(c, Candidate))])
    code = bytearray(b"".join(d.code for d in block.instructions))
    code[edit.address - START : edit.end - START] = edit.code
    return new, bytes(code)


@pytest.mark.parametrize("n_bytes", range(40))
def test_nops_fill_with_as_few_as_possible(n_bytes):
    """Any number of bytes becomes the fewest NOPs of up to nine bytes, which both decoders read."""
    code = nops(n_bytes)
    assert len(code) == n_bytes
    assert len(list(decode(code))) == -(-n_bytes // 9)
    assert all(d.is_nop for d in decode(code))
    assert agrees(code)


def test_freed_bytes_become_one_nop_behind_the_replacement():
    """The replacement comes first, then a single NOP; everything else stays."""
    _, code = patched("inc ecx; mov eax, 0; neg edx")
    assert code == code_of("inc ecx; xor eax, eax") + nops(3) + code_of("neg edx")


def test_a_return_moves_up():
    """NOPs behind a return are never run."""
    new, code = patched("mov eax, 0; ret")
    assert code == code_of("xor eax, eax; ret") + nops(3)
    assert text_of(new) == "xor eax, eax; ret"


@pytest.mark.parametrize("target", [0x1040, 0xFF00, 0x900000, 0xFB0])
def test_a_jump_moves_up_and_keeps_its_target(target):
    """Short and near jumps are encoded anew for their new place."""
    text = f"mov eax, 0; jmp {target:#x}"
    new, code = patched(text)
    assert len(code) == len(code_of(text))
    xor, jump, *rest = decode(code, START)
    assert (str(xor.instruction), jump.target, len(rest)) == ("xor eax, eax", target, 1)
    assert text_of(new) == f"xor eax, eax; jmp {target:#x}"


def test_a_jump_that_would_not_reach_stays():
    """A short jump at the limit of its reach keeps its place; the NOP stands before it."""
    text = f"mov eax, 0; jmp {START + 7 + 127:#x}"
    _, code = patched(text)
    assert code == code_of("xor eax, eax") + nops(3) + code_of(text)[-2:]


@pytest.mark.parametrize("last", ["je 0x1040", "call 0x1040", "jmp rax", "inc ecx"])
def test_nothing_else_moves(last):
    """Conditional jumps, calls and indirect jumps keep their places, and so do return addresses."""
    text = f"mov eax, 0; {last}"
    _, code = patched(text)
    assert code[5:] == code_of(text)[5:]


def test_a_prefixed_jump_stays():
    """A jump with a prefix is left alone: its meaning differs between processors."""
    block = code_of("mov eax, 0") + b"\xf2\xe9\x10\0\0\0"
    _, code = patched(block)
    assert code[5:] == block[5:]


def test_filler_merges_with_the_freed_bytes():
    """NOPs behind a window, with code behind them, become part of the one NOP."""
    _, code = patched(code_of("mov eax, 0") + nops(2) + code_of("neg edx"))
    assert code == code_of("xor eax, eax") + nops(5) + code_of("neg edx")


def test_alignment_stays():
    """NOPs at a block's end align what follows: they keep their bytes."""
    _, code = patched(code_of("mov eax, 0") + nops(7))
    assert code == code_of("xor eax, eax") + nops(3) + nops(7)


def test_a_second_edit_merges_with_the_first_one_s_filler():
    """At a block's end, NOPs that the same run made may change again."""
    index = RuleIndex(RULES)
    block = block_of("mov rcx, rdx; mov rdx, rcx; mov rax, 0")
    edits = []
    while True:
        found = [index.match(w) for w in windows(block, [0] * len(block.instructions), index.longest, index.usable)]
        candidates = [c for c in found if isinstance(c, Candidate)]
        if not candidates:
            break
        block, new = patch(block, candidates[-1:], edits)
        edits += new
    assert sum(d.is_nop for d in block.instructions[-2:]) == 1


def test_filler_inside_a_window_is_freed():
    """A NOP between the instructions of a window is part of its room."""
    _, code = patched(code_of("mov rcx, rdx") + nops(4) + code_of("mov rdx, rcx; neg esi"))
    assert code == code_of("mov rcx, rdx") + nops(7) + code_of("neg esi")


def test_no_edits_change_nothing(program):
    """Without edits the bytes are those of the file."""
    image = load(program)
    assert apply(image, []) == image.data
