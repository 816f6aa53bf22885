"""Which rules fit a window, and why others do not."""

import pytest
from pieces import window_of
from sample_rules import ALL_FLAGS, CLEAR, RULES, rule

from rewriter.matcher import Candidate, Refusal, RuleIndex, hardware_mask
from ruledb.machine.canonical import canonicalise, to_canonical_mask
from ruledb.machine.instruction import parse_sequence, sequence_text
from ruledb.machine.liveness import EVERYTHING
from ruledb.machine.registers import parse_mask


def outcome(rules, text, dead=ALL_FLAGS, **index):
    """What is put in place of *text*, or the reason why nothing is; None where no rule matches."""
    match RuleIndex(rules, **index).match(window_of(text, dead)):
        case Candidate(option=option):
            return sequence_text(option.after)
        case Refusal(reason):
            return reason
    return None


def test_a_rule_applies_to_any_registers():
    """A pattern's registers stand for any that the site names."""
    assert [outcome([CLEAR], f"mov {r}, 0") for r in ("eax", "r12d", "esi")] == ["xor eax, eax", "xor r12d, r12d", "xor esi, esi"]


def test_another_pattern_is_no_refusal():
    """Where no pattern matches, nothing is said."""
    assert outcome([CLEAR], "mov eax, 2") is None
    assert outcome([CLEAR], "mov rax, 0") is None


def test_live_flags_refuse():
    """A rule that changes a flag which may be read is not applied."""
    assert outcome([CLEAR], "mov eax, 0", dead="CF PF AF ZF SF") == "live flags"


def test_live_registers_refuse():
    """A rule that leaves another value in a register which may be read is not applied, not even for one lane."""
    assert outcome(RULES, "mov ecx, edx; mov esi, ecx", dead="rcx") == "mov esi, edx"
    assert outcome(RULES, "mov ecx, edx; mov esi, ecx", dead="ecx") == "live register"


def test_registers_that_are_not_touched_may_live():
    """What neither side names has no part in the condition."""
    assert outcome([CLEAR], "mov eax, 0", dead=ALL_FLAGS) == "xor eax, eax"


def test_constants_are_bound():
    """Equal constants match equal symbols; expressions are evaluated for the site's values."""
    merge = rule("add r0d, c0; add r0d, c1", "add r0d, (c0 + c1)", "r0")
    assert outcome([merge], "add esi, 5; add esi, -9") == "add esi, -4"
    assert outcome([merge], "add esi, 5; add esi, 5") is None


def test_an_operation_that_is_undefined_refuses():
    """log2 of what is no power of two has no value."""
    by_power = rule("imul r0, r0, c0", "shl r0, log2(c0)", "r0")
    assert outcome([by_power], "imul rsi, rsi, 1024") == "shl rsi, 10"
    assert outcome([by_power], "imul rsi, rsi, 1023") == "constant"


def test_a_constant_that_does_not_fit_refuses():
    """A sum beyond the immediate's bits has no encoding."""
    merge = rule("add r0, c0; add r0, c1", "add r0, (c0 + c1)", "r0")
    assert outcome([merge], "add rsi, 0x7fffffff; add rsi, 2") == "does not fit"


def test_a_high_byte_that_does_not_exist_refuses():
    """Neither esi nor r8 has bits 15..8 of their own."""
    high = rule("movzx r0d, r0b; shl r0d, c0", "mov r0h, r0b", "r0")
    assert outcome([high], "movzx ecx, cl; shl ecx, 8") == "mov ch, cl"
    assert outcome([high], "movzx esi, sil; shl esi, 8") == "does not fit"


def test_a_longer_replacement_refuses():
    """Bytes are those of the encodings at the site; filler between the instructions is room for more."""
    grow = rule("inc r0d; inc r0d", "add r0d, 0x1000", "r0")
    assert outcome([grow], "inc eax; inc eax") == "longer"
    assert outcome([grow], "inc eax; nop; inc eax") == "add eax, 0x1000"


def test_a_replacement_that_saves_nothing_refuses():
    """Equal cost at the site is no reason to change it."""
    same = rule("add r0d, r0d", "shl r0d, 1", "r0")
    assert outcome([same], "add eax, eax") == "not cheaper"


def test_a_replacement_that_writes_more_refuses():
    """A caller may rely on registers that the old code did not write."""
    swap = rule("mov r0, r1; mov r0, r1; mov r0, r1", "xchg r0, r1", "-")
    assert outcome([swap], "mov rcx, rdx; mov rcx, rdx; mov rcx, rdx", dead=f"rcx rdx {ALL_FLAGS}") == "scratch"


@pytest.mark.parametrize("text", ["mov rbp, rsp", "mov r10, rsp", "add rsp, 1"])
def test_frames_are_left_alone(text):
    """What an unwinder finds the frame from stays, dead though it may look."""
    rules = [rule("mov r0, rsp", "", f"rsp {ALL_FLAGS}"), rule("add rsp, 1", "inc rsp", "rsp PF AF ZF SF OF")]
    assert outcome(rules, text, dead="rbp r10 r12 " + ALL_FLAGS) == "cfi"
    assert outcome(rules, "mov r12, rsp", dead="rbp r10 r12 " + ALL_FLAGS) == ""


def test_the_best_saving_is_taken():
    """Of several rules for one pattern, the one that saves most by the cost model wins."""
    longer = rule("mov r0d, 0; mov r1d, 0", "mov r0d, 0; xor r1d, r1d", "r0 r1")
    shorter = rule("mov r0d, 0; mov r1d, 0", "xor r0d, r0d; xor r1d, r1d", "r0 r1")
    assert outcome([longer, shorter], "mov eax, 0; mov ecx, 0") == "xor eax, eax; xor ecx, ecx"


def test_a_worse_rule_applies_where_the_best_may_not():
    """A refusal of one rule leaves the others."""
    exact = rule("add r0d, 1; mov r1d, 0", "inc r0d; mov r1d, 0", "r0 r1 PF AF ZF SF OF")
    best = rule("add r0d, 1; mov r1d, 0", "inc r0d; xor r1d, r1d", "r0 r1")
    assert outcome([exact, best], "add eax, 1; mov ecx, 0", dead="CF") == "inc eax; mov ecx, 0"


def test_fewer_bytes_alone_are_no_reason_under_time():
    """Under `time`, a rewrite that saves nothing but bytes is refused: they would become one more NOP on the way."""
    shorter = rule("mov r0, c0", "mov r0d, c0", "r0")
    assert outcome([shorter], "mov rsi, 5") == "mov esi, 5"
    assert outcome([shorter], "mov rsi, 5", cost="time") == "only bytes"


def test_the_time_model_prefers_a_shorter_chain():
    """Under `time`, fewer cycles are better even with more bytes saved elsewhere."""
    quick = rule("imul r0, r0, c0", "shl r0, log2(c0)", "r0")
    assert outcome([quick], "imul rsi, rsi, 2", cost="time") == "shl rsi, 1"


def test_levels_include_those_before():
    """A rule for a higher level is not used for a lower one."""
    higher = rule("mov r0d, 0", "xor r0d, r0d", "r0", march="x86-64-v3")
    assert outcome([higher], "mov eax, 0") is None
    assert outcome([higher], "mov eax, 0", march="x86-64-v3") == "xor eax, eax"


@pytest.mark.parametrize(
    "condition",
    [
        {"policy": "stack"}, {"assumes": ("stack(rbp)",)}, {"guards": ("pow2(c0)",)}, {"facts": ("r0 < 5",)},
        {"positions": (0, 2)}, {"branch": "e"}, {"march": "x86-64-v9"},
    ],
)  # fmt: skip
def test_unknown_conditions_are_not_ignored(condition):
    """A rule with a condition that is not known here is not used, and counted."""
    index = RuleIndex([rule("mov r0d, 0", "xor r0d, r0d", "r0", **condition)])
    assert (index.n_unsupported, index.match(window_of("mov eax, 0", ALL_FLAGS))) == (1, None)


@pytest.mark.parametrize(
    ("pattern", "replacement"), [("mov r0d, 0", "mov r0d, r1d"), ("mov r0d, 0", "mov r0d, c0"), ("mov r0d, 0", "cdq"), ("mov r0d, [r1]", "xor r0d, r0d"), ("mov r0d, 0", "mov r0d, [rip+0x10]")]
)  # fmt: skip
def test_what_a_pattern_does_not_name_is_not_used(pattern, replacement):
    """A replacement with registers or constants of its own, and a rule about memory without a policy for it, is not used."""
    assert RuleIndex([rule(pattern, replacement, "r0")]).n_unsupported == 1


@pytest.mark.parametrize("dead", ["", "rcx", "r12 ZF", "ecx r12 CF", "rdx", "rsi r12 rcx"])
def test_masks_agree_with_the_canonical_ones(dead):
    """Moving a rule's mask to hardware registers asks the same as moving the live ones to canonical registers."""
    canonical = canonicalise(parse_sequence("mov r12, rsi; shl r12, cl"))
    change = parse_mask("r0 rcx ZF")
    live = EVERYTHING & ~parse_mask(dead)
    assert bool(hardware_mask(change, canonical.families) & live) == bool(to_canonical_mask(live, canonical, change))


def test_answers_depend_on_encodings_only_once():
    """The same encodings elsewhere get the same options from memory."""
    index = RuleIndex(RULES)
    assert index.options(window_of("mov eax, 0").decoded) is index.options(window_of("mov eax, 0").decoded)
