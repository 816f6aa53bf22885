"""The proofs of a rewriter's sites: by worker processes, each claim once, and none that was proved before."""

import json
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from time import monotonic
from typing import Any

from ruledb.machine.canonical import text_digest
from ruledb.machine.elf import load
from ruledb.machine.files import write_whole
from ruledb.machine.instruction import parse_sequence, sequence_text
from ruledb.machine.policy import read_conditions
from ruledb.parallel import in_order, worker_pool
from ruledb.progress import stage
from ruledb.proof.prover import FIRST, SECOND, Proved, Prover, Refuted, Verdict
from ruledb.proof.solvers import solver_version
from ruledb.request import unmodelled
from ruledb.semantics.digest import semantics_digest
from ruledb.sites import Claim, Site, SitesError, audit, claim_of, sites_of

__all__ = ["prove_sites", "verdict_of"]


def prove_sites(report: Path, solver: str, jobs: int | None, folder: Path) -> dict[str, Any]:
    """
    Prove the sites that *report* lists, with one *solver* on both encodings. Digests of what was proved are kept in *folder*.

    Returns the counts by the keys of the command's JSON. A site where the files are not what was told counts as refuted.

    Raises:
        SitesError: It is no report of a rewriter, or one of a dry run.
        ElfError: The files that it names are not what they were.

    """
    start = monotonic()
    told = _report(report)
    sites = sites_of(told)
    before, after = (load(Path(told[key])) for key in ("input", "output"))
    failures = list(audit(before, after.data, sites))
    claims: dict[str, tuple[Claim, list[Site]]] = {}
    for site in sites if not failures else ():
        match claim_of(before, after, site):
            case str(problem):
                failures.append(f"{site.text}: {problem}")
            case claim:
                claims.setdefault(claim.digest, (claim, []))[1].append(site)
    n_wrong = len(failures)
    cache = _Proofs(folder, solver)
    asked = {digest: pair for digest, pair in claims.items() if digest not in cache}
    verdicts = dict(zip(asked, _proved_claims([claim for claim, _ in asked.values()], solver, jobs), strict=True))
    cache.add(digest for digest, (verdict, _) in verdicts.items() if verdict == "proved")
    failures += [f"{asked[d][1][0].text}: {verdict}: {reason}: {asked[d][0].text}" for d, (verdict, reason) in verdicts.items() if reason]
    undecided = [site.text for d, (verdict, _) in verdicts.items() if verdict == "unknown" for site in asked[d][1]]
    counts = {name: sum(v == name for v, _ in verdicts.values()) for name in ("proved", "refuted", "unknown")}
    counts["proved"] += len(claims) - len(asked)
    counts["refuted"] += n_wrong
    return {
        "rules": len({each["rule"] for each in told["rewrites"]}),
        "sites": len(sites),
        "claims": len(claims),
        "known": len(claims) - len(asked),
        **counts,
        "undecided": undecided,
        "failures": failures,
        "seconds": round(monotonic() - start, 2),
    }


def _report(path: Path) -> dict[str, Any]:
    try:
        told = json.loads(path.read_text())
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as problem:
        raise SitesError(f"{path}: cannot be read ({problem}); expected a report that 'peephole-rewrite --report' wrote") from None
    if not isinstance(told, dict) or not all(isinstance(told.get(key), str) for key in ("input", "output")):
        raise SitesError(f"{path}: names no input and output; expected a report that 'peephole-rewrite --report' wrote, not of a dry run")
    return told


class _Proofs:
    """Digests of the claims that were proved by a solver in this version, under the semantics as they are."""

    def __init__(self, folder: Path, solver: str) -> None:
        self._path = folder / text_digest(f"{semantics_digest()} {solver} {solver_version(solver)}")
        self._known = set(self._path.read_text().split()) if self._path.is_file() else set()

    def __contains__(self, digest: str) -> bool:
        return digest in self._known

    def add(self, digests: Iterable[str]) -> None:
        """Remember *digests*."""
        self._known |= set(digests)
        write_whole(self._path, "\n".join(sorted(self._known)).encode())


def _proved_claims(claims: Sequence[Claim], solver: str, jobs: int | None) -> Iterable[tuple[str, str]]:
    """Verdict and reason of every claim, in order, by worker processes."""
    tasks = [
        (sequence_text(c.before), sequence_text(c.after), c.live, (c.conditions.policy, c.conditions.assumes), c.march, solver)
        for c in claims
    ]
    if not tasks:
        return
    with stage("verify", len(tasks)) as advance, worker_pool(jobs) as pool:
        for verdict in in_order(pool, _prove_claim, tasks):
            advance(1)
            yield verdict


def _prove_claim(task: tuple[str, str, int, tuple[str, tuple[str, ...]], str, str]) -> tuple[str, str]:
    before, after, live, conditions, march, solver = task
    sides = parse_sequence(before), parse_sequence(after)
    if reason := unmodelled(sides[0]) or unmodelled(sides[1]):
        return "unknown", reason
    return verdict_of(_prover(solver).prove(*sides, live, plausible=0, conditions=read_conditions(*conditions), march=march))


@lru_cache(maxsize=1)
def _prover(solver: str) -> Prover:
    """The prover of a process; its terms are dear to make."""
    return Prover((1000, 20000), (FIRST[0], solver), (SECOND[0], solver))


def verdict_of(found: Verdict) -> tuple[str, str]:
    """A verdict in a word, and why it is not proved."""
    match found:
        case Proved():
            return "proved", ""
        case Refuted(_, reason):
            return "refuted", reason
        case undecided:
            return "unknown", undecided.reason
