"""Memory policies and assumptions as text."""

import pytest

from ruledb.machine.policy import POLICIES, STRICT, Conditions, read_conditions
from ruledb.machine.registers import RBP, RSP, VIRTUAL


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("assumes", [(), ("stack(rbp)",), ("stack(rbp)", "stack(r2)", "private(rsp-16)", "dead(rsp-8)")])
def test_conditions_read_back(policy, assumes):
    """What a rule's text says of memory is what it was made from."""
    conditions = read_conditions(policy, assumes)
    assert conditions.assumes == assumes
    assert read_conditions(conditions.policy, conditions.assumes) == conditions
    assert str(conditions) == f"policy {policy}" + (f", assuming {', '.join(assumes)}" if assumes else "")


def test_a_rule_without_memory_is_strict():
    """A rule that touches no memory assumes nothing."""
    assert read_conditions("none", ()) == STRICT == Conditions()


def test_what_addresses_the_frame():
    """The stack pointer always does, other registers where it is assumed."""
    assert STRICT.frame == {RSP}
    assert read_conditions("stack", ("stack(rbp)", "stack(r1)")).frame == {RSP, RBP, VIRTUAL + 1}


@pytest.mark.parametrize(
    "text", ["stack(eax)", "stack", "stack(rbp-8)", "private(rsp)", "private(rbp-8)", "dead(rsp-x)", "fast(rsp-8)", ""]
)
def test_unknown_assumptions_are_refused(text):
    """An assumption that nobody could discharge is an error that shows it."""
    with pytest.raises(ValueError, match="assumption"):
        read_conditions("strict", (text,))


def test_unknown_policies_are_refused():
    """The message lists the policies."""
    with pytest.raises(ValueError, match="expected one of strict, stack, private, plain"):
        Conditions("lax")
