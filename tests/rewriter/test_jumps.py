"""Windows that a conditional jump closes: its condition may change, its target never does."""

import shutil
import subprocess

import pytest
from linked import assembled
from pieces import START, block_of
from sample_rules import ALL_FLAGS, rule

from rewriter.driver import rewrite
from rewriter.matcher import Candidate, Refusal, RuleIndex
from rewriter.patcher import patch
from ruledb.machine.codec import Flow
from ruledb.machine.liveness import EVERYTHING
from ruledb.machine.registers import parse_mask
from ruledb.machine.window import windows

CHAIN = rule("cmp r0d, r1d; setl r2b; movzx r2d, r2b; test r2d, r2d; jne L", "cmp r0d, r1d; jl L", "r0 r1", branch="l")
DEAD = f"rax {ALL_FLAGS}"


def outcome(rules, text, dead=DEAD):
    """The whole of *text* as a window: what the best rule says to it."""
    block = block_of(text)
    index = RuleIndex(rules)
    live = [EVERYTHING & ~parse_mask(dead)] * len(block.instructions)
    whole = [w for w in windows(block, live, index.longest, index.usable) if len(w.positions) == len(block.instructions)]
    return block, (index.match(whole[0]) if whole else None)


def chain(target, jump="jne"):
    """A comparison that is made a bit, and the bit a jump, to *target*."""
    return f"cmp ecx, edx; setl al; movzx eax, al; test eax, eax; {jump} {target:#x}"


@pytest.mark.parametrize("distance", [-0x60, 0x40, 0x7F, 0x1000, -0x900])
def test_the_target_stays(distance):
    """Short and near jumps, back and forth, go where they went."""
    block, found = outcome([CHAIN], chain(START + distance))
    assert isinstance(found, Candidate)
    new, (edit,) = patch(block, [found])
    jumps = [d for d in new.instructions if d.flow is Flow.CONDITIONAL]
    assert [(d.instruction.mnemonic, d.target, d.length) for d in jumps] == [("jl", START + distance, block.last.length)]
    assert len(edit.code) == block.end - block.start


def test_a_jump_that_no_longer_reaches_is_refused():
    """A short jump forward gets longer when it stands earlier; where a byte does not hold the distance, nothing is done."""
    end = START + sum(d.length for d in block_of(chain(START)).instructions)
    assert isinstance(outcome([CHAIN], chain(end + 118))[1], Candidate)
    refused = outcome([CHAIN], chain(end + 127))[1]
    assert isinstance(refused, Refusal)
    assert refused.reason == "does not fit"


def test_the_condition_must_be_that_of_the_pattern():
    """Another condition is another window."""
    assert outcome([CHAIN], chain(START, "je"))[1] is None


def test_what_lives_behind_the_jump_counts():
    """A register that either way reads keeps the rule out."""
    assert outcome([CHAIN], chain(START), ALL_FLAGS)[1].reason == "live register"


@pytest.mark.parametrize(
    "wrong",
    [
        rule("test r0d, r0d; jne L", "jmp L", "r0", branch="mp"),
        rule("test r0d, r0d; jne L", "test r0d, r0d", "r0", branch="ne"),
        rule("test r0d, r0d; jne L", "test r0d, r0d; jne M", "r0", branch="ne"),
        rule("test r0d, r0d; jne L", "jne L; test r0d, r0d", "r0", branch="ne"),
        rule("test r0d, r0d; jne L", "test r0d, r0d; je L", "r0", branch="ne"),
        rule("test r0d, r0d; jne L", "test r0d, r0d; jne L", "r0"),
        rule("test r0d, r0d", "test r0d, r0d; jne L", "r0", branch="ne"),
    ],
)
def test_rules_that_jump_in_other_ways_are_not_used(wrong):
    """The jump closes both sides, goes to the window's target, and has the condition that the rule says."""
    index = RuleIndex([wrong])
    assert index.n_unsupported == 1


def test_a_jump_inside_a_block_closes_nothing():
    """Behind filler the jump is no longer the block's last instruction: it waits for the next reading."""
    block = block_of(chain(START + 0x40) + "; nop")
    index = RuleIndex([CHAIN])
    assert not [w for w in windows(block, [0] * 6, 9, index.usable) if len(w.positions) == 5]


SOURCE = """
function start
xor ebx, ebx
again: mov ecx, ebx
mov edx, 7
cmp ecx, edx
setl al
movzx eax, al
test eax, eax
jne less
add ebp, 1
less: inc ebx
cmp ebx, 20
jne again
mov edi, ebp
mov eax, 60
syscall
ud2
end start
"""


@pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")
def test_a_program_with_such_jumps_does_the_same(tmp_path):
    """The bit goes, the count of times that the jump was not taken stays; rewriting again changes nothing."""
    path = assembled(tmp_path, SOURCE)
    before = subprocess.run([path], check=False).returncode
    result = rewrite(path.read_bytes(), [CHAIN])
    assert [r.after for r in result.rewrites] == [next(r.after for r in result.rewrites)]
    assert result.rewrites[0].after.startswith("cmp ecx, edx; jl 0x")
    path.write_bytes(result.data)
    assert subprocess.run([path], check=False).returncode == before == 13
    assert rewrite(result.data, [CHAIN]).data == result.data
