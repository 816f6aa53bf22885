"""Rules with a rip-relative operand: the address stays what it is, wherever the instruction comes to stand."""

import pytest
from pieces import START, block_of
from sample_rules import ALL_FLAGS, rule, strict

from rewriter.matcher import Candidate, Refusal, RuleIndex
from rewriter.patcher import patch
from ruledb.machine.liveness import EVERYTHING
from ruledb.machine.registers import parse_mask
from ruledb.machine.window import windows

MOVED = rule("not r0; lea r1, [rip+c0]; mov r0, r1", "lea r0, [rip+c0]", f"r0 {ALL_FLAGS}")
FOLDED = strict("lea r0, [rip+c0]; mov r1d, dword ptr [r0+c1]", "mov r1d, dword ptr [rip+(c0+c1)]", f"r1 {ALL_FLAGS}")
JUMP = rule("lea r0, [rip+c0]; mov r1, r0; test r1, r1; jne L", "lea r1, [rip+c0]; test r1, r1; jne L", "r1", branch="ne")


def outcome(rules, text, start=START):
    """The block *text* and what the best rule says to all of it."""
    block = block_of(text, start)
    index = RuleIndex(rules)
    live = [EVERYTHING & ~parse_mask(f"rax {ALL_FLAGS}")] * len(block.instructions)
    whole = [w for w in windows(block, live, index.longest, index.usable) if len(w.positions) == len(block.instructions)]
    return block, index.match(whole[0]) if whole else None


@pytest.mark.parametrize("start", [START, 0x400000, 0x7FFF0000])
@pytest.mark.parametrize("distance", [0, 0x20, -0x100, 0x12345])
def test_the_address_stays(start, distance):
    """An earlier place needs a greater distance to the same address; text and bytes say the same."""
    block, found = outcome([MOVED], f"not rcx; lea rax, [rip+{start + distance:#x}]; mov rcx, rax", start)
    assert isinstance(found, Candidate)
    new, _ = patch(block, [found])
    assert [str(d.instruction) for d in new.instructions][:1] == [f"lea rcx, [rip+{start + distance:#x}]"]
    assert new.instructions[0].reference == start + distance
    assert [str(i) for i in found.option.after] == [f"lea rcx, [rip+{start + distance:#x}]"]


def test_one_option_serves_all_places():
    """What was found out for one place holds the address of each."""
    index = RuleIndex([MOVED])
    for target in (0x2000, 0x3000, 0x2000):
        block = block_of(f"not rcx; lea rax, [rip+{target:#x}]; mov rcx, rax")
        live = [EVERYTHING & ~parse_mask(f"rax {ALL_FLAGS}")] * 3
        (window,) = (w for w in windows(block, live, 3, index.usable) if len(w.positions) == 3)
        assert patch(block, [index.match(window)])[0].instructions[0].reference == target


@pytest.mark.parametrize(("target", "more", "expected"), [(0x5000, 0x18, 0x5018), (0x5000, -0x18, 0x4FE8)])
def test_a_displacement_is_added_to_the_address(target, more, expected):
    """The folded operand addresses what the two instructions did."""
    block, found = outcome([FOLDED], f"lea rax, [rip+{target:#x}]; mov ecx, dword ptr [rax{more:+}]")
    assert patch(block, [found])[0].instructions[0].reference == expected


def test_an_address_out_of_reach_is_refused():
    """A sum that is more than two gigabytes away has no encoding."""
    _, found = outcome([FOLDED], "lea rax, [rip+0x7ffffff0]; mov ecx, dword ptr [rax+0x7ffffff0]")
    assert isinstance(found, Refusal)
    assert found.reason == "does not fit"


def test_addresses_and_jumps_go_together():
    """Both distances are worked out at the place."""
    block, found = outcome([JUMP], f"lea rax, [rip+0x9000]; mov rcx, rax; test rcx, rcx; jne {START + 0x40:#x}")
    new, _ = patch(block, [found])
    assert (new.instructions[0].reference, new.instructions[2].target) == (0x9000, START + 0x40)


def test_rules_with_two_such_addresses_are_not_used():
    """Whether they are the same is not known before the place is."""
    two = rule("lea r0, [rip+c0]; lea r1, [rip+c1]", "lea r0, [rip+c0]; mov r1, r0", "r0 r1")
    assert RuleIndex([two]).n_unsupported == 1
