"""Rules as values: their identity and what they say of themselves."""

from dataclasses import replace

import pytest
from asm import ADD_TO_INC, PROOFS, rule, seq

from ruledb.machine.registers import mask_text
from ruledb.machine.rule import skeleton


def test_the_digest_is_fixed():
    """The digest of a rule is the same in every version and process: rule files and reports name rules by it."""
    assert ADD_TO_INC.digest == "8f826f4798151d74d6dd7b6d6864e898"


@pytest.mark.parametrize("change", [{"uses": 99}, {"witness": "elsewhere"}, {"proofs": ()}, {"size": (9, 9)}, {"preserves": 1}])
def test_what_a_rule_does_not_claim_is_not_in_its_digest(change):
    """Counts, provenance, proofs and savings leave the identity alone."""
    assert replace(ADD_TO_INC, **change).digest == ADD_TO_INC.digest


@pytest.mark.parametrize(
    "change",
    [
        {"pattern": seq("add r0, 1")},
        {"replacement": seq("sub r0d, -1")},
        {"march": "x86-64-v3"},
        {"policy": "stack"},
        {"assumes": ("stack(rbp)",)},
        {"guards": ("pow2(c0)",)},
        {"facts": ("r0 < 5",)},
        {"positions": (0, 2)},
        {"branch": "e"},
    ],
)
def test_what_a_rule_claims_is_in_its_digest(change):
    """Either side and every condition make another rule."""
    assert replace(ADD_TO_INC, **change).digest != ADD_TO_INC.digest


def test_a_rule_touches_what_either_side_does():
    """All lanes of the families of both sides, and all flags; what of it is not preserved must be dead."""
    made = rule("mov r0d, r1d", "mov r0, r1", "r0d r1 all", proofs=PROOFS)
    assert mask_text(made.touched) == "r0 r1 CF PF AF ZF SF OF"
    assert made.dead == "r0[63:32]"


def test_a_rule_knows_the_domains_of_its_constants():
    """They are the pattern's, whatever the replacement does."""
    assert rule("add r0b, c0", "sub r0b, -c0", "r0").constant_bits == (8,)


def test_a_skeleton_forgets_names_and_constants():
    """Rules that differ only in registers and constants have one skeleton; shapes stay apart."""
    one = skeleton(seq("add r0d, c0; mov r1d, r0d"), seq("lea r1d, [r0+c0]"))
    assert one == skeleton(seq("add ebx, 5; mov ecx, ebx"), seq("lea edx, [rdi+9]"))
    assert one != skeleton(seq("add r0, c0; mov r1d, r0d"), seq("lea r1d, [r0+c0]"))
