"""
Measure the search: candidates per second and core at length 3, as a training runs it.

The table holds harvested targets that nothing shorter equals, and 100 planted ones: random sequences of length 3, which the
search must find again. A candidate counts once, whatever the number of live-out sets.
"""

import os
import platform
import random
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from resource import RUSAGE_SELF, getrusage
from time import perf_counter
from typing import Any

import llvmlite.binding as llvm

from ruledb.campaign import CORE_CONSTANTS, MAX_SYMBOLS, Naming
from ruledb.harvester import elf_files, harvest
from ruledb.machine.canonical import domains, fixed_families
from ruledb.machine.elf import ElfError
from ruledb.machine.instruction import parse_sequence
from ruledb.machine.registers import RSP, family_mask
from ruledb.parallel import in_order, worker_pool
from ruledb.progress import stage
from ruledb.proof.prover import written_families
from ruledb.search.alphabet import alphabet
from ruledb.search.enumerator import Enumeration
from ruledb.search.evaluate import Evaluator
from ruledb.search.kernels import KernelLibrary
from ruledb.search.states import N_CONSTANTS, UNIVERSES
from ruledb.search.targets import Target

__all__ = ["measure_enumeration"]

_PLANTED = 100
_WINDOW = 6
_FREE = (1 << 20, 1 << 20, 1 << 20)
"""A cost that every candidate beats: nothing is left out of the measurement for being no saving."""


def measure_enumeration(library: KernelLibrary, paths: Sequence[Path], registers: int, wanted: int, jobs: int) -> dict[str, Any]:
    """
    Run length 3 over *registers* registers against *wanted* harvested targets of the files below *paths*.

    Returns the figures by name; ``targets`` says how many there were in the end.
    """
    universe = UNIVERSES[registers]
    letters = alphabet(universe, CORE_CONSTANTS)
    evaluator = Evaluator(library, universe)
    start = perf_counter()
    harvested = list(_harvested(paths, universe, 2 * wanted))
    harvest_s = perf_counter() - start
    first = Enumeration(evaluator, universe, letters, harvested, jobs=jobs)
    first.retire([m.target for m in first.empty()])
    first.retire(sorted({m.target for m in first.run(1, flags=False)}))
    first.search.expand()
    first.retire(first.plain())
    first.retire(sorted({m.target for m in first.run(2, flags=False)}))
    first.search.expand()
    first.retire(first.plain())
    hard = [t for t, active in zip(harvested, first.active, strict=True) if active][:wanted]
    planted = _planted(first, len(hard))
    start = perf_counter()
    search = Enumeration(evaluator, universe, letters, [*hard, *planted], jobs=jobs)
    search.search.expand()
    search.search.expand()
    expand_s, start = perf_counter() - start, perf_counter()
    found = {m.target for m in search.run(3, narrow=False, flags=False)}
    scan_s = perf_counter() - start
    n = search.counters.by_length[3]
    return {
        "machine": f"{platform.machine()} {llvm.get_host_cpu_name()}, {os.cpu_count()} cores",
        "versions": f"Python {platform.python_version()}, llvmlite {version('llvmlite')}, NumPy {version('numpy')}",
        "registers": registers,
        "alphabet": len(letters),
        "targets": len(hard),
        "targets_harvested": len(harvested),
        "planted": len(planted),
        "planted_found": sum(i in found for i in range(len(hard), len(hard) + len(planted))),
        "states_of_length_2": search.search.levels[2].n,
        "candidates": n,
        "hits": search.counters.hits,
        "matches": search.counters.matches,
        "cores": jobs,
        "candidates_per_second_and_core": int(n / scan_s / jobs),
        "scanned_per_second_and_core": int(n / search.counters.scan_s),
        "with_expansion_per_second_and_core": int(n / (scan_s + expand_s) / jobs),
        "seconds_scan": round(scan_s, 2),
        "seconds_expansion": round(expand_s, 2),
        "seconds_harvest": round(harvest_s, 2),
        "peak_memory_mb": getrusage(RUSAGE_SELF).ru_maxrss // 1024,
    }


def _windows(path: str) -> list[tuple[str, int]]:
    """Text and live set of every window of three instructions and more in one file; nothing where it is unreadable."""
    try:
        found = harvest(Path(path), _WINDOW, connected=False)
    except ElfError:
        return []
    return [(text, live) for (text, _), lives in found.windows.items() if text.count(";") >= 2 for live in lives]


def _harvested(paths: Sequence[Path], universe: Sequence[int], wanted: int) -> Iterator[Target]:
    seen: set[tuple[str, int]] = set()
    files = [str(f) for f in elf_files(paths)]
    with stage("harvest", len(files)) as advance, worker_pool() as pool:
        for windows in in_order(pool, _windows, files):
            advance(1, f"{len(seen):,} targets")
            for text, live in windows:
                if (text, live) in seen or len(seen) >= wanted:
                    continue
                target = _target(text, live, universe)
                if target is not None:
                    seen.add((text, live))
                    yield target
            if len(seen) >= wanted:
                return


def _target(text: str, live: int, universe: Sequence[int]) -> Target | None:
    instructions = parse_sequence(text)
    naming = Naming.of(instructions, universe)
    n_symbols = len(domains(instructions))
    if naming is None or n_symbols > N_CONSTANTS:
        return None
    there = naming.there(instructions)
    fixed = frozenset(fixed_families(instructions) - {RSP})
    return Target(there, naming.mask(live), written_families(there), fixed, min(n_symbols, MAX_SYMBOLS), _FREE, text)


def _planted(search: Enumeration, seed: int) -> list[Target]:
    """Random sequences of three letters whose last writes a register; every register that they write is live."""
    rng = random.Random(seed)  # noqa: S311  # no secret
    letters = search.search.letters
    found: list[Target] = []
    while len(found) < _PLANTED:
        state, last = rng.randrange(search.search.levels[2].n), rng.randrange(len(letters))
        outputs = search.search.bounds[last].outputs
        if not outputs:
            continue
        sequence = (*search.search.sequence(2, state), letters[last].instruction)
        writes = written_families(sequence)
        live = sum(map(family_mask, writes))
        fixed = frozenset(fixed_families(sequence) - {RSP})
        found.append(Target(sequence, live, writes, fixed, MAX_SYMBOLS, _FREE, f"planted {len(found)}"))
    return found
