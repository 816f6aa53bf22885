"""
Which windows are improved already, because a rule applies to a part of them.

A rewriter that runs to a fixpoint needs no rule for such a window: the smaller rule fires first. So the database holds
small patterns, and the prover is asked once about each idea. A rule for a mere part counts if it saves an instruction: one that
only saves bytes must not hide what the whole window could give up.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache

from ruledb.machine.canonical import canonicalise
from ruledb.machine.instruction import Instruction, parse_sequence, sequence_text
from ruledb.machine.registers import ALL_FLAGS, N_LANES, VIRTUAL
from ruledb.machine.rule import Rule
from ruledb.semantics.symbolic import reads_and_writes

__all__ = ["Cover", "Rank", "rank"]


@lru_cache(maxsize=1 << 16)
def _effects(instruction: Instruction) -> tuple[int, int]:
    """Masks of what is read and what is surely overwritten."""
    reads, _, kills = reads_and_writes(instruction)
    return reads, kills


Rank = tuple[int, bool]
"""Length of a window, and whether its constants are numbers: the order in which windows are learned."""


def rank(instructions: Sequence[Instruction]) -> Rank:
    """The rank of a canonical window."""
    symbolic = canonicalise(instructions)
    return len(instructions), symbolic is not None and symbolic.text != sequence_text(instructions)


class Cover:
    """
    An index of rules by pattern.

    A window is covered by rules of a lower rank only. So it does not matter in which order rules of one rank are found,
    and training comes to the same rules however often it is interrupted.
    """

    def __init__(self, rules: Iterable[Rule]) -> None:
        self._rules: dict[str, list[tuple[Rank, str, int, bool]]] = {}
        self._mnemonics: set[tuple[str, ...]] = set()
        for rule in rules:
            self.add(rule)

    def add(self, rule: Rule) -> None:
        """Count *rule* in."""
        found = self._rules.setdefault(sequence_text(rule.pattern), [])
        found.append((rank(rule.pattern), rule.digest, rule.touched & ~rule.preserves, len(rule.replacement) < len(rule.pattern)))
        found.sort()
        self._mnemonics.add(tuple(i.mnemonic for i in rule.pattern))

    def improving(self, text: str, live: int, below: Rank) -> str | None:
        """
        Digest of a rule of a rank under *below* that improves a part of the canonical window *text* (or all of it) where
        *live* is live behind it.

        *live* covers what the window writes; everything else counts as live.
        """
        instructions = parse_sequence(text)
        behind = [live]
        for instruction in reversed(instructions[1:]):
            reads, kills = _effects(instruction)
            behind.append(behind[-1] & ~kills | reads)
        behind.reverse()
        names = [i.mnemonic for i in instructions]
        for n in range(1, len(instructions) + 1):
            for start in range(len(instructions) - n + 1):
                if tuple(names[start : start + n]) in self._mnemonics:
                    found = self._at(instructions[start : start + n], behind[start + n - 1], below, is_whole=n == len(instructions))
                    if found is not None:
                        return found
        return None

    def _at(self, part: Sequence[Instruction], live: int, below: Rank, *, is_whole: bool) -> str | None:
        for literal in (False, True):
            canonical = canonicalise(part, literal=literal)
            if canonical is None:
                continue
            for rule_rank, digest, must_be_dead, is_shorter in self._rules.get(canonical.text, ()):
                if (is_whole or is_shorter) and rule_rank < below and not _renamed(live, canonical.families) & must_be_dead:
                    return digest
        return None


def _renamed(live: int, families: Sequence[int]) -> int:
    """*live* over the registers of a canonical window, renamed to those of a part of it."""
    fixed = live & ((1 << (N_LANES * VIRTUAL)) - 1)
    return fixed | live & ALL_FLAGS | sum((live >> (N_LANES * f) & 0b1111) << (N_LANES * (VIRTUAL + k)) for k, f in enumerate(families))
