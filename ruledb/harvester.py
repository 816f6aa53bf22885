"""
Harvest: the windows of a binary in canonical form, with what is live behind them and how often they were seen.

Only windows that could be improved as a whole are kept: modelled, searched, and *connected* (every instruction depends on another,
overwrites its result, or accesses the same place). Of independent instructions each is a window of its own.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from ruledb.machine.blocks import read_program
from ruledb.machine.canonical import Canonical, canonicalise, families_in, to_canonical_mask
from ruledb.machine.codec import Decoded
from ruledb.machine.elf import ElfError, parse
from ruledb.machine.instruction import Instruction, Mem, registers_of
from ruledb.machine.liveness import live_out
from ruledb.machine.registers import ALL_FLAGS, RSP, families_of, family_mask
from ruledb.machine.window import windows
from ruledb.search.cells import accessed, celled
from ruledb.search.reach import unsearched
from ruledb.semantics.forms import barrier, features
from ruledb.semantics.symbolic import reads_and_writes

__all__ = ["LONGEST_IN_MEMORY", "MAX_FAMILIES", "Harvest", "Sighting", "elf_files", "harvest", "is_connected", "is_usable", "live_of"]

MAX_FAMILIES = 4
"""Registers of a harvested window, named and implicit ones together: what a search has slots for. Places in memory are such registers."""

LONGEST_IN_MEMORY = 4
"""Instructions of a window with memory or a jump: from longer ones nothing was learned, since their replacements are short."""

MAX_NAMED = 6
"""Registers of a window with memory, with those that only address it."""


@dataclass(slots=True)
class Sighting:
    """One canonical window under one live-out set: how often, and where first (address, constants)."""

    count: int
    address: int
    constants: tuple[int, ...]


@dataclass(slots=True)
class Harvest:
    """What one binary holds. *windows*: (canonical text, is literal) → live mask over canonical families → sighting."""

    sha256: str
    n_bytes: int
    n_instructions: int = 0
    n_functions: int = 0
    opaque: dict[str, int] = field(default_factory=dict)
    windows: dict[tuple[str, bool], dict[int, Sighting]] = field(default_factory=dict)


def elf_files(paths: Sequence[Path]) -> Iterator[Path]:
    """
    Regular files below *paths*, each once, in order of name; what is no ELF file is the reader's business.

    Raises:
        FileNotFoundError: A path does not exist.

    """
    seen: set[Path] = set()
    for path in paths:
        if not path.exists():
            raise FileNotFoundError(f"{path}: no such file or directory; expected a binary or a folder of binaries")
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            real = file.resolve()
            if file.is_file() and real not in seen:
                seen.add(real)
                yield file


@lru_cache(maxsize=1 << 16)
def is_usable(instruction: Instruction) -> bool:
    """Whether a harvested window may hold *instruction*: it is modelled, searched, and uses rsp for nothing but to address memory."""
    accesses = [o for o in instruction.operands if isinstance(o, Mem) and o.width]
    names_stack = any(r.family == RSP for o in instruction.operands if o not in accesses for r in registers_of(o))
    return not names_stack and barrier(instruction) is None and not unsearched(instruction)


@lru_cache(maxsize=1 << 16)
def _effects(instruction: Instruction) -> tuple[int, int]:
    """Masks of what is read and may be written, registers as whole families."""
    reads, writes, _ = reads_and_writes(instruction)
    return tuple(sum(map(family_mask, families_of(m))) | m & ALL_FLAGS for m in (reads, writes))  # type: ignore[return-value]  # two


def is_connected(instructions: Sequence[Instruction]) -> bool:
    """Whether every instruction is joined to the others by a result that is read or overwritten, or by a place that both access."""
    effects, places = [_effects(i) for i in instructions], accessed(instructions)
    reached, frontier = {0}, [0]
    while frontier:
        i = frontier.pop()
        for j in range(len(effects)):
            same_place = places[i] is not None and places[i] == places[j]
            if j not in reached and (same_place or _joined(effects[min(i, j)], effects[max(i, j)])):
                reached.add(j)
                frontier.append(j)
    return len(reached) == len(effects)


def _joined(first: tuple[int, int], second: tuple[int, int]) -> bool:
    return bool(first[1] & second[0] or first[1] & second[1] & ~ALL_FLAGS)


def live_of(canonical: Canonical, live: int) -> int:
    """The part of *live* that a replacement could spoil: lanes of written families, in canonical names, and flags."""
    written = 0
    for instruction in canonical.instructions:
        written |= _effects(instruction)[1]
    return to_canonical_mask(live, canonical, written | ALL_FLAGS)


def harvest(path: Path, longest: int, *, connected: bool = True) -> Harvest:
    """
    The windows of at most *longest* instructions of the ELF file at *path*, all of them or only the *connected* ones.

    Raises:
        ElfError: It is no readable x86-64 ELF file.

    """
    try:
        data = path.read_bytes()
    except OSError as problem:
        raise ElfError(f"{path}: cannot read it ({problem.strerror})") from None
    program = read_program(parse(data, str(path)))
    liveness = live_out(program)
    found = Harvest(hashlib.sha256(data).hexdigest(), len(data), opaque=dict(program.opaque_counts()))
    found.n_functions = len(program.functions)
    forms: dict[tuple[bytes, ...], tuple[Canonical, ...]] = {}

    def usable(decoded: Decoded) -> bool:
        return is_usable(decoded.instruction)

    for block in program.open_blocks():
        found.n_instructions += len(block.instructions)
        for window in windows(block, liveness.after(block), longest, usable):
            raw = tuple(d.code for d in window.decoded)
            if raw not in forms:
                forms[raw] = _forms(window.instructions, connected=connected)
            for literal, canonical in enumerate(forms[raw]):
                live = live_of(canonical, window.live_out)
                lives = found.windows.setdefault((canonical.text, bool(literal)), {})
                if live in lives:
                    lives[live].count += 1
                else:
                    lives[live] = Sighting(1, window.start, tuple(c for c in canonical.constants if isinstance(c, int)))
    return found


def _forms(instructions: tuple[Instruction, ...], *, connected: bool) -> tuple[Canonical, ...]:
    """The symbolic form and, where it has constants, the literal one; none where the window is not worth keeping."""
    found = frozenset().union(*map(features, instructions))
    in_memory = bool(found & {"memory", "rip", "branch"})
    if in_memory and (len(instructions) > LONGEST_IN_MEMORY or (len(instructions) == 1 and "branch" in found)):
        return ()
    if len(families_in(instructions)) > (MAX_NAMED if in_memory else MAX_FAMILIES) or (connected and not is_connected(instructions)):
        return ()
    symbolic = canonicalise(instructions)
    literal = canonicalise(instructions, literal=True)
    if symbolic is None or literal is None:
        return ()
    if in_memory:
        forms = [celled(c.instructions) for c in (symbolic, literal)]
        if forms[0] is None or len(families_in(forms[0].canonical.instructions)) > MAX_FAMILIES:
            return ()
        # Displacements alone make no other window: to the search they are gone.
        return (symbolic, literal) if forms[1] is not None and forms[1].canonical.text != forms[0].canonical.text else (symbolic,)
    return (symbolic, literal) if literal.text != symbolic.text else (symbolic,)
