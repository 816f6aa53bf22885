"""Cases from compilers' reports, read as windows, and what counts as a pass."""

import json
from dataclasses import dataclass
from pathlib import Path

from ruledb.cost import size_of, time_of
from ruledb.machine.instruction import Instruction
from ruledb.machine.march import BASELINE, LEVELS
from ruledb.machine.registers import family_mask
from ruledb.optimizer import Goal, improve
from ruledb.proof.prover import written_families
from ruledb.request import live_mask, read_window, unmodelled, unsearchable

FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Case:
    """A window with what is live behind it, and another: a better one (*better_by* says how), or a tempting wrong one."""

    id: str
    window: tuple[Instruction, ...]
    other: tuple[Instruction, ...]
    live: int
    better_by: tuple[str, ...] = ()
    features: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.id

    @property
    def scratch(self) -> int:
        """Families that the other window writes, this one does not, and that are dead."""
        if unmodelled((*self.window, *self.other)):
            return 0
        new = written_families(self.other) - written_families(self.window)
        return sum(family_mask(f) for f in new if not family_mask(f) & self.live)

    @property
    def march(self) -> str:
        """The level that has the instructions of both windows."""
        return "x86-64-v3" if set(self.features) & LEVELS["x86-64-v3"] else BASELINE

    @property
    def is_searched(self) -> bool:
        """Whether the search has kernels for both windows."""
        return not unsearchable(self.window) and not unsearchable(self.other)

    @property
    def cost(self) -> str:
        """The cost model that the case is about."""
        return "size" if "bytes" in self.better_by else "time"


def cases(name, other):
    """The cases of a file; the other window is under the key *other*."""
    found = []
    for entry in json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8")):
        window = read_window("\n".join(entry["input"]))
        live = live_mask(window, ",".join(entry["live_out"]["regs"]), ",".join(entry["live_out"]["flags"]))
        better_by = tuple(entry.get("better_by", ()))
        found.append(Case(entry["id"], window, read_window("\n".join(entry[other])), live, better_by, tuple(entry["features"])))
    return found


def measures(instructions):
    """What a window costs, by the names of `better_by`."""
    n_bytes, n = size_of(instructions)
    time = time_of(instructions, n_bytes)
    return {"bytes": n_bytes, "instructions": n, "latency": time[1], "uops": time[2], "dep": time[:3]}


def is_solved(case, library, timeout_s):
    """Whether a search improves the case at least as much as the report, by one of its measures."""
    goal = Goal(case.window, case.live, case.scratch)
    found = improve(library, goal, case.cost, length=3, timeout_s=timeout_s, jobs=2)
    if found.replacement is None:
        return False
    ours, theirs = measures(found.replacement), measures(case.other)
    return any(ours[name] <= theirs[name] for name in case.better_by)
