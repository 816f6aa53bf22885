"""Cover: a window is improved already where a rule of a lower rank applies to a part of it."""

import pytest
from asm import mask, rule, seq

from ruledb.cover import Cover, rank

HIGHEST = (9, True)
ZERO = rule("mov r0, 0", "xor r0d, r0d", "r0")
COPY = rule("mov r0, r1; mov r1, r0", "mov r0, r1", "r0 r1 all")
ADD = rule("add r0d, c0", "sub r0d, -c0", "r0 ZF")
FIVE = rule("add r0d, 5", "sub r0d, -5", "r0 all")
NOTHING = rule("add r0, 0", "", "r0")
SHIFT = rule("shl r0d, cl", "shl r0d, cl", "r0 rcx")
COVER = Cover([ZERO, NOTHING, COPY, ADD, FIVE, SHIFT])


@pytest.mark.parametrize(
    ("window", "live", "found"),
    [
        ("mov r0, 0", "r0", ZERO),
        ("mov r0, 0", "r0 CF", None),
        ("mov r0d, 0", "r0", None),
        # It saves bytes only: the whole may give up more.
        ("mov r0, r1; mov r2, 0", "r0 r2", None),
        ("mov r0, 0; add r1, r0", "r1 all", None),
        # The flags are overwritten before anyone reads them.
        ("add r0, 0; add r1, r0", "r1 all", NOTHING),
        ("add r0, 0; adc r1, r0", "r1 all", None),
        ("add r0, 0; mov r1, r0", "r0 r1 ZF", None),
        ("add r0, 0; inc r1", "r0 r1 ZF", NOTHING),
        ("add r0, 0; inc r1", "r0 r1 CF", None),
        ("mov r2, 0; mov r0, r1; mov r1, r0", "r0 r1 r2 all", COPY),
        ("mov r0, r1; mov r1, r2", "r0 r1 all", None),
        ("mov r1, r0; mov r0, r1", "r0 r1 all", COPY),
        ("add r0d, c3", "r0 ZF", ADD),
        ("add r0d, c3", "r0 CF", None),
        ("add r0d, 5", "r0 CF", FIVE),
        ("add r0d, 6", "r0 ZF", ADD),
        ("add r0d, 1", "r0 ZF", None),
        ("shl r0d, cl", "r0", SHIFT),
        ("shl ecx, cl", "rcx", None),
    ],
)
def test_parts_are_found(window, live, found):
    """A part counts under what is live behind it: what the rest of the window reads, and what it does not overwrite."""
    assert COVER.improving(window, mask(live), HIGHEST) == (found.digest if found else None)


def test_only_lower_ranks_cover():
    """A rule of the window's own rank, or of a higher one, covers nothing: its turn comes at the same time."""
    own = rank(seq("mov r0, 0"))
    assert COVER.improving("mov r0, 0", mask("r0"), own) is None
    assert COVER.improving("add r0, 0; mov r1, r0", mask("r0 r1"), rank(seq("mov r0, 0; mov r1, r0"))) == NOTHING.digest
    assert rank(seq("add r0d, c0")) < rank(seq("add r0d, 5")) < rank(seq("mov r0, r1; mov r1, r0"))


def test_rules_can_be_added():
    """A rule counts from when it is added."""
    cover = Cover([])
    assert cover.improving("mov r0, 0", mask("r0"), HIGHEST) is None
    cover.add(ZERO)
    assert cover.improving("mov r0, 0", mask("r0"), HIGHEST) == ZERO.digest
