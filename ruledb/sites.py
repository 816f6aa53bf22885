"""
What a rewriter did to a program, proved again site by site: from the two files, not from the rules.

The report tells where bytes were changed, and what was live behind each change. All else is read from the files: bytes that
differ must lie within the changes told, and what is decoded there before and after must be equivalent where that is
live. A jump or return that moved up to shorter code must still be the same one.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ruledb.machine.canonical import canonicalise, rename, text_digest, to_canonical_mask, touched_mask
from ruledb.machine.codec import Decoded, Flow, decode
from ruledb.machine.constant import Symbol
from ruledb.machine.elf import Image
from ruledb.machine.instruction import Instruction, sequence_text
from ruledb.machine.policy import POLICIES, Conditions, read_conditions
from ruledb.machine.registers import ALL_FLAGS, VIRTUAL, mask_text, parse_mask
from ruledb.machine.window import is_filler

__all__ = ["Claim", "Site", "SitesError", "audit", "claim_of", "sites_of"]


class SitesError(ValueError):
    """A report, or what it tells of, is not what is expected; the message says so."""


@dataclass(frozen=True, slots=True)
class Site:
    """Bytes from *address* to *end* that were changed, once or more often. *live_out* is what is live behind their code."""

    address: int
    end: int
    live_out: int
    conditions: Conditions
    march: str

    @property
    def text(self) -> str:
        """Where it is."""
        return f"{self.address:#x}-{self.end:#x}"


@dataclass(frozen=True, slots=True)
class Claim:
    """That *after* may stand for *before* where *live* is live; names and masks are canonical, if there are few enough registers."""

    before: tuple[Instruction, ...]
    after: tuple[Instruction, ...]
    live: int
    conditions: Conditions
    march: str

    @property
    def text(self) -> str:
        """The claim in words."""
        sides = f"{sequence_text(self.before)} => {sequence_text(self.after)}"
        return f"{sides} | live {mask_text(self.live)} | {self.march} {self.conditions}"

    @property
    def digest(self) -> str:
        """Its identity."""
        return text_digest(self.text)


def sites_of(report: Mapping[str, Any]) -> list[Site]:
    """
    The sites of a rewriter's *report*, ascending and disjoint: changes that overlap are one site.

    Raises:
        SitesError: It is no such report.

    """
    try:
        changes = [
            Site(
                int(each["address"]),
                int(each["end"]),
                parse_mask(each["live_out"]),
                read_conditions(each.get("policy", "none"), each.get("assumes", ())),
                each.get("march", "x86-64"),
            )
            for each in report["rewrites"]
        ]
    except (KeyError, TypeError, ValueError) as problem:
        raise SitesError(f"no report of sites ({problem!r}); expected one that 'peephole-rewrite --report' wrote") from None
    merged: list[Site] = []
    # Of changes that end at one place, the last one counts: by then, less may be live.
    for change in sorted(changes, key=lambda c: c.address):
        if not merged or change.address >= merged[-1].end:
            merged.append(change)
        else:
            merged[-1] = _joined(merged[-1], change)
    return merged


def _joined(first: Site, second: Site) -> Site:
    """Two changes that overlap: what either may assume holds."""
    behind = second if second.end >= first.end else first
    one, other = first.conditions, second.conditions
    conditions = Conditions(
        max(one.policy, other.policy, key=POLICIES.index),
        one.bases | other.bases,
        max(one.private_bytes, other.private_bytes),
        max(one.dead_bytes, other.dead_bytes),
    )
    return Site(first.address, behind.end, behind.live_out, conditions, max(first.march, second.march))


def audit(before: Image, after: bytes, sites: Sequence[Site]) -> Iterator[str]:
    """What is wrong with *after* as a whole: its length, or bytes that differ where no site is."""
    if len(before.data) != len(after):
        yield f"{len(after)} bytes instead of {len(before.data)}"
        return
    old, new = (np.frombuffer(data, dtype=np.uint8) for data in (before.data, after))
    differs = old != new
    for site in sites:
        offset = before.file_offset(site.address)
        if offset is None or before.file_offset(site.end - 1) != offset + site.end - site.address - 1:
            yield f"{site.text}: not in the file"
        else:
            differs[offset : offset + site.end - site.address] = False
    stray = np.flatnonzero(differs)
    if len(stray):
        yield f"{len(stray)} bytes differ where nothing was rewritten, the first at offset {int(stray[0]):#x}"


def claim_of(before: Image, after: Image, site: Site) -> Claim | str:
    """What has to be proved of *site*; or what is wrong there, whatever the code computes."""
    sides = [_straight(image.read(site.address, site.end - site.address), site.address) for image in (before, after)]
    for name, side in zip(("before", "after"), sides, strict=True):
        if side is None:
            return f"not straight code {name} the rewrite"
    (old, left), (new, right) = (side for side in sides if side is not None)
    if left != right:
        return f"ends in {right or 'nothing'} instead of {left or 'nothing'}"
    whole = canonicalise((*old, *new), literal=True)
    if whole is None:
        return Claim(old, new, site.live_out, site.conditions, site.march)
    # Of two addresses in the program, the distance is known here.
    instructions = rename(whole.instructions, lambda r: r, lambda c: whole.constants[c.index] if isinstance(c, Symbol) else c)
    names = {family: VIRTUAL + k for k, family in enumerate(whole.families)}
    conditions = replace(site.conditions, bases=frozenset(names.get(family, family) for family in site.conditions.bases))
    live = to_canonical_mask(site.live_out, whole, touched_mask(instructions) | ALL_FLAGS)
    return Claim(instructions[: len(old)], instructions[len(old) :], live, conditions, site.march)


def _straight(code: bytes, address: int) -> tuple[tuple[Instruction, ...], str] | None:
    """
    The instructions of *code* without filler, up to a transfer of control, and that in words; behind it only filler may stand.
    None where it is not so.
    """
    work = [d for d in decode(code, address) if not is_filler(d)]
    ends = [d for d in work if d.flow is not Flow.NEXT]
    if not ends:
        return tuple(d.instruction for d in work), ""
    if ends != work[-1:] or ends[0].flow is Flow.INVALID:
        return None
    n = len(work) if ends[0].flow is Flow.CONDITIONAL else len(work) - 1
    return tuple(d.instruction for d in work[:n]), _end_text(ends[0])


def _end_text(end: Decoded) -> str:
    """
    A transfer of control, wherever it stands and however it is encoded; of a conditional jump only where it goes, since the
    condition is part of the code.
    """
    if end.flow is Flow.CONDITIONAL and end.target is not None:
        return f"{end.flow.name} {end.target:#x}"
    return f"{end.flow.name} {end.instruction.mnemonic} {end.code.hex() if end.target is None else hex(end.target)}"
