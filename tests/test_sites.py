"""Sites: what a report and two files say has to be proved, and what is wrong whatever code computes."""

from dataclasses import replace

import pytest
from asm import mask

from ruledb.machine.codec import encode_at
from ruledb.machine.elf import Image, Segment
from ruledb.machine.instruction import parse_sequence, sequence_text
from ruledb.machine.policy import STRICT, read_conditions
from ruledb.sites import Claim, Site, SitesError, audit, claim_of, sites_of

START = 0x1000


def image_of(*texts, n_bytes=32):
    """An image that holds the instructions of *texts*, then NOPs."""
    code = b""
    for piece in texts:
        code += piece if isinstance(piece, bytes) else b"".join(encode_at(i, START + len(code)) for i in parse_sequence(piece))
    data = code.ljust(n_bytes, b"\x90")
    return Image("image", data, "executable", 0, (Segment(START, 0, len(data), len(data), True, False),), ())


def site(n_bytes, live="rax"):
    """A site of *n_bytes* at the image's start."""
    return Site(START, START + n_bytes, mask(live), STRICT, "x86-64")


def change(start, end, live="rax"):
    """A change as a report tells it."""
    return {"address": start, "end": end, "live_out": live}


def test_changes_that_overlap_are_one_site():
    """Of several changes to the same bytes, what is live behind the one that ends last counts, of equal ones the later."""
    told = [change(0x20, 0x28), change(0x10, 0x18, "rbx"), change(0x14, 0x1C, "rcx"), change(0x16, 0x1C, "rdx"), change(0x17, 0x19)]
    found = sites_of({"rewrites": told})
    assert [(s.address, s.end, s.live_out) for s in found] == [(0x10, 0x1C, mask("rdx")), (0x20, 0x28, mask("rax"))]


@pytest.mark.parametrize(
    "report", [{}, {"rewrites": [{}]}, {"rewrites": [change(1, 2, "nothing")]}, {"rewrites": 5}, {"rewrites": [change("x", 2)]}]
)
def test_other_reports_are_refused(report):
    """What lacks a part, or has one that cannot be read, is no report of sites."""
    with pytest.raises(SitesError, match="peephole-rewrite --report"):
        sites_of(report)


def test_bytes_may_differ_at_sites_only():
    """A byte that differs elsewhere, a site that is not in the file, or another length is told."""
    before = image_of("mov eax, 0; inc ecx")
    after = bytearray(image_of("xor eax, eax", b"\x0f\x1f\x00", "inc ecx").data)
    assert list(audit(before, bytes(after), [site(5)])) == []
    assert list(audit(before, bytes(after), [site(2)])) != []
    assert list(audit(before, bytes(after), [])) != []
    assert list(audit(before, bytes(after) + b"\x90", [site(5)])) != []
    assert list(audit(before, before.data, [site(33)])) != []
    after[-1] ^= 1
    (problem,) = audit(before, bytes(after), [site(5)])
    assert "1 bytes differ" in problem


def test_claims_are_canonical():
    """Equal code on other registers is one claim, constants stay, and filler is no part of it."""
    claims = [
        claim_of(image_of(f"mov {a}, 7; mov {b}, {a}"), image_of(f"mov {b}, 7", b"\x66\x90"), site(7, live))
        for a, b, live in (("eax", "ecx", "rcx"), ("edx", "ebx", "rbx rsi"))
    ]
    assert (
        claims[0]
        == claims[1]
        == Claim(parse_sequence("mov r0d, 7; mov r1d, r0d"), parse_sequence("mov r1d, 7"), mask("r1"), STRICT, "x86-64")
    )
    other = claim_of(image_of("mov eax, 8; mov ecx, eax"), image_of("mov ecx, 8"), site(7, "rcx"))
    assert isinstance(other, Claim)
    assert other.digest != claims[0].digest != replace(claims[0], live=mask("r1 CF")).digest


def test_ends_must_be_the_same():
    """A return or jump may move, but no other may come in its place, and nothing but filler may stand behind it."""
    before = image_of("mov eax, 0; ret")
    assert isinstance(claim_of(before, image_of("xor eax, eax; ret"), site(6)), Claim)
    assert claim_of(before, image_of("xor eax, eax"), site(6)) == "ends in nothing instead of RETURN ret c3"
    assert claim_of(before, image_of("xor eax, eax; ret; inc ecx"), site(6)) == "not straight code after the rewrite"
    assert claim_of(before, image_of("xor eax, eax", b"\x06"), site(6)) == "not straight code after the rewrite"
    jump = image_of("mov eax, 0", bytes.fromhex("e900020000"))
    assert isinstance(claim_of(jump, image_of("xor eax, eax", bytes.fromhex("e903020000")), site(10)), Claim)
    assert "0x120a" in str(claim_of(jump, image_of("xor eax, eax", bytes.fromhex("e900020000")), site(10)))


def test_conditions_of_jumps_are_code():
    """A conditional jump at the end is part of the claim; where it goes must stay."""
    before = image_of("cmp ecx, edx; setl al; test al, al", bytes.fromhex("7520"))
    after = image_of("cmp ecx, edx", bytes.fromhex("7c25"))
    claim = claim_of(before, after, site(9))
    assert isinstance(claim, Claim)
    assert sequence_text(claim.after) == "cmp r0d, r1d; jl L"
    assert "ends in CONDITIONAL" in str(claim_of(before, image_of("cmp ecx, edx", bytes.fromhex("7c24")), site(9)))


def test_assumptions_follow_names():
    """What a report says of a register's value is claimed of its canonical name; overlapping changes may assume what either does."""
    told = [change(START, START + 8) | {"policy": "stack", "assumes": ["stack(rbp)"], "march": "x86-64-v3"}, change(START + 4, START + 7)]
    (found,) = sites_of({"rewrites": told})
    code = "mov dword ptr [rbp-8], eax; mov ecx, dword ptr [rbp-8]"
    claim = claim_of(image_of(code), image_of("mov dword ptr [rbp-8], eax; mov ecx, eax"), replace(found, end=START + 6))
    assert isinstance(claim, Claim)
    assert str(claim.conditions) == str(read_conditions("stack", ["stack(r0)"]))
    assert claim.march == "x86-64-v3"


def test_all_instructions_count():
    """What stands in a site's bytes is in the claim, whatever a report says of it."""
    claim = claim_of(image_of("mov eax, 0; inc ecx"), image_of("xor eax, eax; inc ecx; inc ecx"), site(7))
    assert isinstance(claim, Claim)
    assert sequence_text(claim.after) == "xor r0d, r0d; inc r1d; inc r1d"


def test_addresses_in_the_program_have_their_distance():
    """An operand that was folded into a rip-relative one addresses the same place, as numbers show."""
    before = image_of("lea rax, [rip+0x2000]", "mov ecx, dword ptr [rax+8]")
    claim = claim_of(before, image_of("mov ecx, dword ptr [rip+0x2008]"), site(10, "rcx"))
    assert isinstance(claim, Claim)
    assert sequence_text(claim.after) == "mov r1d, dword ptr [rip+0x2008]"
    assert sequence_text(claim.before).startswith("lea r0, [rip+0x2000]")
