"""
What may be assumed of memory: the policy of a rule, and the conditions that its site must meet.

Two addresses may alias unless their terms or an assumption say otherwise. Policies, from the most careful one:

* ``strict``: the replacement performs the loads and stores of the pattern: same addresses, widths, order and stored values. The
  location may be device memory, or shared with other threads.
* ``stack``: slots addressed from rsp, or from a register with the assumption ``stack(<register>)``. A load of a slot may
  take its value from a store of the window, or from an earlier load, if no other load lies between; a store that a
  later one covers may go if no other store and nothing that may fault lies between. All else is strict.
* ``private``: as ``stack``, for slots whose address no one else has: only accesses addressed so touch them, and only what they
  hold in the end counts. All else is strict.
* ``plain``: a user's promise for all memory: only what it holds in the end counts.

Under no policy does a replacement access a byte that the pattern does not access, or add a division. ``private(rsp-N)`` assumes that only
accesses addressed from rsp touch the N bytes below rsp, and ``dead(rsp-N)`` that no one reads them behind the window; both
of rsp as it is before the window.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from ruledb.machine.registers import RSP, Register, register_named

__all__ = ["POLICIES", "STRICT", "Conditions", "read_conditions"]

POLICIES = ("strict", "stack", "private", "plain")


@dataclass(frozen=True, slots=True)
class Conditions:
    """
    A policy with its assumptions.

    Attributes:
        bases: Families that hold an address of the function's frame at the window's start (rsp always does).
        private_bytes: Bytes below rsp that only accesses addressed from rsp touch.
        dead_bytes: Bytes below rsp that no one reads behind the window.

    """

    policy: str = "strict"
    bases: frozenset[int] = frozenset()
    private_bytes: int = 0
    dead_bytes: int = 0

    def __post_init__(self) -> None:
        if self.policy not in POLICIES:
            raise ValueError(f"memory policy {self.policy!r}: expected one of {', '.join(POLICIES)}")

    @property
    def frame(self) -> frozenset[int]:
        """Families that address slots of the frame."""
        return self.bases | {RSP}

    @property
    def assumes(self) -> tuple[str, ...]:
        """The assumptions as a rule's text has them."""
        below = (("private", self.private_bytes), ("dead", self.dead_bytes))
        return tuple(f"stack({Register(f, 64)})" for f in sorted(self.bases)) + tuple(f"{name}(rsp-{n})" for name, n in below if n)

    def __str__(self) -> str:
        return f"policy {self.policy}" + (f", assuming {', '.join(self.assumes)}" if self.assumes else "")


STRICT = Conditions()

_ASSUMPTION = re.compile(r"(stack|private|dead)\((\w+?)(?:-(\d+))?\)")


def read_conditions(policy: str, assumes: Iterable[str]) -> Conditions:
    """
    The conditions that a rule's policy and assumptions say; ``none`` is a rule without memory.

    Raises:
        ValueError: A policy or an assumption is unknown.

    """
    bases, below = set(), {"private": 0, "dead": 0}
    for text in assumes:
        found = _ASSUMPTION.fullmatch(text.strip().lower())
        register = register_named(found[2]) if found else None
        if found is None or register is None or register.width != 64 or (found[1] == "stack") != (found[3] is None):
            raise ValueError(f"assumption {text!r}: expected stack(rbp), private(rsp-8) or dead(rsp-8)")
        if found[1] == "stack":
            bases.add(register.family)
        elif register.family != RSP:
            raise ValueError(f"assumption {text!r}: expected rsp")
        else:
            below[found[1]] = int(found[3])
    return Conditions("strict" if policy == "none" else policy, frozenset(bases) - {RSP}, below["private"], below["dead"])
