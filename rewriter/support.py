"""Which rules can be used here: nothing that they ask for is unknown."""

from collections.abc import Sequence

from ruledb.machine.canonical import TARGET, families_in
from ruledb.machine.instruction import Instruction, Label, Mem, symbols_of
from ruledb.machine.policy import read_conditions
from ruledb.machine.rule import Rule

__all__ = ["CONDITIONS", "MARCHES", "is_supported", "relative_operands"]

MARCHES = ("x86-64", "x86-64-v2", "x86-64-v3")
"""Instruction-set levels, each including those before."""

_POLICIES = frozenset({"none", "strict", "stack"})
"""Memory policies that can be discharged: no memory; the accesses of the pattern, as they are; slots of the stack."""


CONDITIONS = ("o", "no", "b", "ae", "e", "ne", "be", "a", "s", "ns", "p", "np", "l", "ge", "le", "g")
"""Condition codes by number. Source: Intel 64 and IA-32 Architectures SDM, volume 1, appendix B."""


def is_supported(rule: Rule) -> bool:
    """
    Whether nothing in *rule* is unknown here. Its replacement may only touch what its pattern touches: another register
    could be one that a canonical name stands for.
    """
    conditions = (rule.guards, rule.facts, rule.positions)
    sides = (*rule.pattern, *rule.replacement)
    in_memory = any(isinstance(o, Mem) and i.mnemonic != "lea" for i in sides for o in i.operands)
    return (
        rule.policy in _POLICIES
        and in_memory == (rule.policy != "none")
        and _only_bases(rule)
        and _jumps_alike(rule)
        and rule.march in MARCHES
        and not any(conditions)
        # Whether two such addresses are one depends on the place.
        and len(relative_operands(rule.replacement)) <= len(relative_operands(rule.pattern)) <= 1
        and len(rule.pattern) > 0
        and families_in(rule.replacement) <= families_in(rule.pattern)
        and symbols_of(rule.replacement) <= symbols_of(rule.pattern)
    )


def _only_bases(rule: Rule) -> bool:
    """Whether all that *rule* assumes is that registers of its pattern address the stack."""
    try:
        assumed = read_conditions(rule.policy, rule.assumes)
    except ValueError:
        return False
    known = all(text.startswith("stack(") for text in rule.assumes) and assumed.bases <= families_in(rule.pattern)
    return known and (rule.policy == "stack" or not rule.assumes)


def _jumps_alike(rule: Rule) -> bool:
    """Whether both sides of *rule* end in a conditional jump to the window's target, under the condition it says; or neither jumps."""
    sides = (rule.pattern, rule.replacement)
    jumps = [[n - len(side) for n, i in enumerate(side) if any(isinstance(o, Label) for o in i.operands)] for side in sides]
    if not rule.branch:
        return jumps == [[], []]
    last = [side[-1] for side in sides if side]
    closes = [i.mnemonic[:1] == "j" and i.mnemonic[1:] in CONDITIONS and i.operands == (TARGET,) for i in last]
    return jumps == [[-1], [-1]] and all(closes) and last[-1].mnemonic == "j" + rule.branch


def relative_operands(instructions: Sequence[Instruction]) -> list[Mem]:
    """The operands of *instructions* that are addressed from the instruction itself."""
    return [o for i in instructions for o in i.operands if isinstance(o, Mem) and o.rip]
