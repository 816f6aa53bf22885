"""Rules with memory are applied where their accesses stay what they are, and what they assume of the stack holds."""

import shutil

import pytest
from linked import assembled
from pieces import window_of
from sample_rules import ALL_FLAGS, RULES, forwarding, rule, strict

from rewriter.driver import Options, rewrite
from rewriter.matcher import UNFRAMED, Candidate, Refusal, RuleIndex
from ruledb.machine.registers import parse_mask

LOAD = strict("mov r0d, dword ptr [r1+c0]; mov r2d, r0d", "mov r2d, dword ptr [r1+c0]", f"r1 r2 {ALL_FLAGS}")
FOLD = strict("add r0, c0; mov r1d, dword ptr [r0+c1]", "mov r1d, dword ptr [r0+(c0 + c1)]", "r1")
FORWARD = forwarding("dword", "r1d")


def outcome(rules, text, dead, **facts):
    """What is put in place of *text*, or why nothing is."""
    match RuleIndex(rules).match(window_of(text, dead), **facts):
        case Candidate(option=option):
            return "; ".join(map(str, option.after))
        case Refusal(reason):
            return reason
    return None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("mov eax, dword ptr [rbx+8]; mov ecx, eax", "mov ecx, dword ptr [rbx+8]"),
        ("mov eax, dword ptr [rbp-0x1000]; mov ecx, eax", "mov ecx, dword ptr [rbp-0x1000]"),
        ("mov eax, dword ptr [r12+8]; mov r9d, eax", "mov r9d, dword ptr [r12+8]"),
        ("mov eax, dword ptr [rsp+8]; mov ecx, eax", None),  # rsp is no r1
        ("mov eax, dword ptr [rax+8]; mov ecx, eax", None),  # one register twice
        ("mov eax, dword ptr [rbx+rdx*4+8]; mov ecx, eax", None),
        ("mov rax, qword ptr [rbx+8]; mov rcx, rax", None),
        ("mov eax, dword ptr fs:[rbx+8]; mov ecx, eax", None),
    ],
)
def test_a_load_moves_to_where_it_is_used(text, expected):
    """The operand is the place's own, whatever its registers and its displacement are."""
    assert outcome([LOAD], text, "rax") == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("add rax, 8; mov ecx, dword ptr [rax+16]", "mov ecx, dword ptr [rax+24]"),
        ("add rax, 0x7ffffff0; mov ecx, dword ptr [rax+16]", "does not fit"),
        ("add rax, -0x80000000; mov ecx, dword ptr [rax-4]", "does not fit"),
        ("add rax, 0x7ffffff0; mov ecx, dword ptr [rax+15]", "mov ecx, dword ptr [rax+0x7fffffff]"),
        ("add rax, 127; mov ecx, dword ptr [rax+126]", "mov ecx, dword ptr [rax+253]"),
    ],
)
def test_displacements_are_exact_or_refused(text, expected):
    """A sum that 32 bits do not hold is no displacement."""
    assert outcome([FOLD], text, "rax CF PF AF ZF SF OF") == expected


def test_what_addresses_a_slot_must_be_the_frame():
    """A store is forwarded where rbp is known to address the stack, and from no other register."""
    text = "mov dword ptr [{0}-8], ecx; mov ecx, dword ptr [{0}-8]"
    assert outcome([FORWARD], text.format("rbp"), "rcx[63:32]", is_framed=True) == "mov dword ptr [rbp-8], ecx"
    assert outcome([FORWARD], text.format("rbp"), "rcx[63:32]") == UNFRAMED
    assert outcome([FORWARD], text.format("rbx"), "rcx[63:32]", is_framed=True) == UNFRAMED


@pytest.mark.parametrize(
    "conditions",
    [
        {"policy": "none"}, {"policy": "private"}, {"policy": "plain"}, {"policy": "unheard of"},
        {"policy": "strict", "assumes": ("stack(r0)",)}, {"policy": "stack", "assumes": ("stack(r0)", "private(rsp-8)")},
        {"policy": "stack", "assumes": ("dead(rsp-8)",)}, {"policy": "stack", "assumes": ("stack(r7)",)}, {"policy": "stack", "assumes": ("sunshine",)},
    ],
)  # fmt: skip
def test_other_conditions_are_not_ignored(conditions):
    """A rule about memory whose policy or assumptions are not known here is not used, and counted."""
    index = RuleIndex([rule("mov dword ptr [r0], r1d; mov r1d, dword ptr [r0]", "mov dword ptr [r0], r1d", "r0 r1d", **conditions)])
    window = window_of("mov dword ptr [rbp], ecx; mov ecx, dword ptr [rbp]")
    assert (index.n_unsupported, index.match(window, is_framed=True)) == (1, None)


@pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")
@pytest.mark.parametrize(
    ("body", "is_forwarded"),
    [
        ("push rbp\nmov rbp, rsp\n{0}\npop rbp\nret", True),
        ("push rbp\nmov rbp, rdi\n{0}\npop rbp\nret", False),
        ("{0}\nret", False),
        ("push rbp\nmov rbp, rsp\ncall other\n{0}\npop rbp\nret", True),
        ("push rbp\nmov rbp, rsp\nmov rbp, [rbp]\n{0}\npop rbp\nret", False),
        ("push rbp\nmov rbp, rsp\ntest edi, edi\nje 1f\nmov rbp, rdi\n1: {0}\npop rbp\nret", False),
        ("push rbp\nmov rbp, rsp\nmov dword ptr [rbp-8], ecx\nmfence\nmov ecx, dword ptr [rbp-8]\npop rbp\nret", False),
        ("push rbp\nmov rbp, rsp\nmov dword ptr [rbp-8], ecx\n1: mov ecx, dword ptr [rbp-8]\ndec edi\njne 1b\npop rbp\nret", False),
    ],
)
def test_forwarding_in_whole_programs(tmp_path, body, is_forwarded):
    """Only a frame that surely is one, and only within a window; under no convention at all, not behind calls either."""
    store = "mov dword ptr [rbp-8], ecx\nmov ecx, dword ptr [rbp-8]\nmov eax, ecx"
    data = assembled(tmp_path, f"function start\n{body.format(store)}\nend start\nfunction other\nret\nend other").read_bytes()
    assert bool(rewrite(data, [FORWARD]).rewrites) == is_forwarded
    assert not rewrite(data, [FORWARD], Options(abi="strict")).rewrites


def test_a_strict_rule_keeps_every_access():
    """The sample rules without assumptions load and store as their patterns do."""
    for sample in RULES:
        if sample.policy == "strict":
            sides = [
                [str(i).partition("ptr")[0].split()[-1] for i in side if "ptr" in str(i)] for side in (sample.pattern, sample.replacement)
            ]
            assert sides[0] == sides[1]
            assert parse_mask("memory") & ~sample.preserves
