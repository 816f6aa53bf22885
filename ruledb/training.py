"""
Training: harvest, search, prove, store, in units of work that are done once.

The stages: (1) every binary not yet known is harvested; (2) windows of one and two instructions are searched and proved, so
that (3) the search for longer ones can leave out all that these rules improve already. What is stored stays stored:
killed at any moment and started again, training goes on where it was, and comes to the same rules.
"""

import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import as_completed
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from time import monotonic
from typing import Any

from ruledb.campaign import REACH, Campaign, Form, Found
from ruledb.cover import Cover, Rank
from ruledb.harvester import Harvest, elf_files, harvest
from ruledb.machine.canonical import text_digest
from ruledb.machine.elf import ElfError
from ruledb.machine.registers import mask_text
from ruledb.machine.rule import Proof, Rule
from ruledb.parallel import in_order, worker_pool
from ruledb.progress import stage
from ruledb.proof.prover import LIMITS_MS
from ruledb.proof.worker import Goal, Outcome, Verdict, Work, Worker
from ruledb.search.kernels import KernelLibrary
from ruledb.store.store import HarvestedWindow, PendingTarget, Store, StoredProof, query_key

__all__ = ["Options", "OutOfTime", "Report", "train"]

_SEARCHES: tuple[tuple[int, ...], ...] = ((1, 2), (3, 4, 5, 6))
"""Lengths of windows that are searched together; the rules of the first spare the second much."""

_MAX_TARGETS = 60_000
"""Targets of one campaign: the most frequent ones."""

_BATCH = 24
"""Windows a task of a prover."""


class OutOfTime(Exception):  # a stop that was asked for
    """The budget is used up; what is stored stays, and another run goes on."""


@dataclass(frozen=True, slots=True)
class Options:
    """What to train, and how far."""

    models: tuple[str, ...] = ("size", "time")
    window: int = 6
    length: int = 3
    registers: int = 4
    jobs: int = field(default_factory=lambda: os.cpu_count() or 1)
    limits_ms: tuple[int, ...] = LIMITS_MS
    budget_s: float | None = None
    cache: Path | None = None
    quiet: bool = False


@dataclass(slots=True)
class Report:
    """What a run did, by the keys of the command's JSON."""

    run: int = 0
    files: int = 0
    skipped: dict[str, int] = field(default_factory=dict)
    instructions: int = 0
    windows: int = 0
    targets: int = 0
    candidates: int = 0
    matches: int = 0
    proved: int = 0
    refuted: int = 0
    unknown: int = 0
    rules: int = 0
    new_rules: int = 0
    quarantined: int = 0
    complete: bool = True
    seconds: dict[str, float] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """The report as plain data."""
        search = self.seconds.get("search", 0.0)
        data = {name: getattr(self, name) for name in self.__slots__}
        return data | {"candidates_per_second": round(self.candidates / search) if search else 0}


def train(store: Store, paths: Sequence[Path], options: Options) -> Report:
    """
    Learn rules from the ELF files below *paths* into *store*.

    Raises:
        FileNotFoundError: A path does not exist.

    """
    return _Training(store, options).run(paths)


class _Training:
    """One run."""

    def __init__(self, store: Store, options: Options) -> None:
        self.store, self.options, self.report = store, options, Report()
        self.library = KernelLibrary(options.cache)
        self.deadline = monotonic() + options.budget_s if options.budget_s is not None else None

    def run(self, paths: Sequence[Path]) -> Report:
        report, shown = self.report, {"paths": [str(p) for p in paths], "models": list(self.options.models)}
        report.run = self.store.start_run(shown | {"window": self.options.window, "length": self.options.length})
        try:
            self.store.reopen_targets(self.options.models, self.options.length)
            with self._timed("harvest"):
                self._harvest(list(elf_files(paths)))
            for lengths in _SEARCHES:
                usable = tuple(n for n in lengths if n <= self.options.window)
                if usable:
                    self._learn(usable)
        except OutOfTime:
            report.complete = False
        totals = self.store.totals()
        report.windows, report.targets, report.rules = totals["windows"], totals["targets"], totals["rules"]
        self.store.finish_run(report.run, report.as_json())
        return report

    def _timed(self, name: str) -> "_Stopwatch":
        return _Stopwatch(self.report.seconds, name)

    def _look_at_clock(self) -> None:
        if self.deadline is not None and monotonic() > self.deadline:
            raise OutOfTime

    # harvest

    def _harvest(self, files: Sequence[Path]) -> None:
        """Harvest the files whose content is not known yet; each is stored at once."""
        known = self.store.known_binaries(self.options.window)
        fresh = []
        for file in files:
            digest, reason = _content(file)
            if digest is None:
                self.report.skipped[reason] = self.report.skipped.get(reason, 0) + 1
            elif digest not in known:
                known.add(digest)
                fresh.append(file)
            else:
                self.report.files += 1
        if not fresh:
            return
        with stage("harvest", len(fresh), quiet=self.options.quiet) as advance, worker_pool(self.options.jobs) as pool:
            results = in_order(pool, _harvest_task, [(str(f), self.options.window) for f in fresh])
            for file, result in zip(fresh, results, strict=True):
                if isinstance(result, str):
                    self.report.skipped[result] = self.report.skipped.get(result, 0) + 1
                else:
                    self._store_harvest(file, result)
                advance(1, file.name)
                self._look_at_clock()

    def _store_harvest(self, file: Path, found: Harvest) -> None:
        self.report.files += 1
        self.report.instructions += found.n_instructions
        rows = [
            HarvestedWindow(text, literal, text.count(";") + 1, live, s.count, f"{file.name}:{s.address:#x}", s.constants)
            for (text, literal), lives in found.windows.items()
            for live, s in lives.items()
        ]
        names = ("sha256", "n_bytes", "n_instructions", "n_functions", "opaque")
        self.store.add_binary(str(file), self.options.window, {name: getattr(found, name) for name in names}, rows)

    # search and proof

    def _learn(self, lengths: Sequence[int]) -> None:
        """
        Search for the pending targets of windows of *lengths*, by arity, and prove what was found, short windows first.

        The targets stay pending until all are done: a run that is interrupted plans the same again, finds the units that are
        finished and the verdicts that are known, and goes on from there.
        """
        cover, done = Cover(self.store.rules()), _Done()
        with self._timed("plan"):
            pending = _uncovered(self.store.pending(lengths), cover, done, (min(lengths), False))
        found: dict[int, list[str]] = {}
        by_kind: dict[tuple[int, bool], list[PendingTarget]] = {}
        for target in pending:
            form = Form.of(target.text)
            if form is None or form.arity is None:
                done.states[target.id] = "searched"
            elif form.arity <= self.options.registers:  # the others stay pending, for a training with more registers
                by_kind.setdefault((form.arity, form.cells is not None), []).append(target)
        with self._timed("search"):
            for (arity, in_memory), targets in sorted(by_kind.items()):
                self._look_at_clock()
                result = self._searched(arity, targets, in_memory=in_memory)
                found |= result.candidates
                done.states |= dict.fromkeys(result.quarantined, "quarantined")
                self.report.quarantined += len(result.quarantined)
        with self._timed("prove"):
            for rank, group in groupby((t for t in pending if t.id in found), key=lambda t: (t.length, t.literal)):
                self._prove(_uncovered(list(group), cover, done, rank), found, cover, done)
        done.states = {t.id: "searched" for targets in by_kind.values() for t in targets} | done.states
        self.store.finish_targets(done.states, done.uses, self.options.models, self.options.length)

    def _searched(self, arity: int, targets: Sequence[PendingTarget], *, in_memory: bool) -> Found:
        """The candidates for *targets*: from the finished unit, or by searching now."""
        chosen = sorted(sorted(targets, key=lambda t: (-t.count, t.id))[:_MAX_TARGETS], key=lambda t: t.id)
        identity = "\n".join(f"{t.text} | {mask_text(t.live)}" for t in chosen)
        key = text_digest(f"search {arity} {self.options.length} {self.store.semantics}\n{identity}")
        known = self.store.unit(key)
        if known is not None:
            names = {f"{t.text} | {mask_text(t.live)}": t.id for t in chosen}
            return Found({names[k]: v for k, v in known["candidates"].items()}, [names[k] for k in known["quarantined"]])
        start = monotonic()
        campaign = Campaign(self.library, arity, chosen, jobs=self.options.jobs, in_memory=in_memory)
        with stage(f"search {arity}{'m' if in_memory else 'r'}", REACH[in_memory], quiet=self.options.quiet) as advance:
            found = campaign.run(
                self.options.length, lambda n, matches: advance(int(n > 0), f"{matches:,} matches for {len(chosen):,} targets")
            )
        names_of = {t.id: f"{t.text} | {mask_text(t.live)}" for t in chosen}
        result = {
            "candidates": {names_of[k]: v for k, v in found.candidates.items()},
            "quarantined": [names_of[i] for i in found.quarantined],
            "n_candidates": found.n_candidates,
        }
        self.report.candidates += found.n_candidates
        self.report.matches += found.n_matches
        self.store.finish_unit(key, "search", self.report.run, monotonic() - start, result)
        return found

    def _prove(self, targets: Sequence[PendingTarget], found: dict[int, list[str]], cover: Cover, done: "_Done") -> None:
        """Prove the candidates of *targets* in worker processes; every batch is stored when it comes back."""
        works = list(self._works(targets, found))
        batches = [works[i : i + _BATCH] for i in range(0, len(works), _BATCH)]
        if not batches:
            return
        with stage("prove", len(works), quiet=self.options.quiet) as advance:
            for batch, outcomes in self._proved(batches):
                self._store_outcomes(batch, outcomes, cover, done)
                advance(len(batch), f"{self.report.new_rules:,} rules")

    def _works(self, targets: Sequence[PendingTarget], found: dict[int, list[str]]) -> Iterator[Work]:
        """One work a window, with the verdicts that are known already."""
        for text, group in groupby(sorted(targets, key=lambda t: (t.text, t.literal, mask_text(t.live))), key=lambda t: t.text):
            members = list(group)
            asked = {query_key(text, c, t.live): (c, t.live) for t in members for c in found[t.id]}
            known = {
                asked[key]: Verdict(
                    p.replacement, p.required, p.preserves, p.verdict, p.reason, _plain(p.opinions), p.ms, None, p.policy, p.assumes
                )
                for key, p in self.store.proofs(asked).items()
                if p.verdict != "unknown" or p.limit_ms >= max(self.options.limits_ms)
            }
            goals = tuple(Goal(t.id, t.live, t.count, t.witness, tuple(found[t.id])) for t in members)
            yield Work(text, members[0].constants, self.options.models, goals, known)

    def _proved(self, batches: Sequence[Sequence[Work]]) -> Iterator[tuple[Sequence[Work], list[Outcome]]]:
        """Batches and their outcomes as they come. A worker that dies takes its batch with it: its targets stay pending."""
        with worker_pool(self.options.jobs, _start_worker, self.options.cache, self.options.limits_ms) as pool:
            futures = {pool.submit(_prove_task, list(batch)): batch for batch in batches}
            for future in as_completed(futures):
                yield futures[future], future.result()
                self._look_at_clock()

    def _store_outcomes(self, batch: Sequence[Work], outcomes: Iterable[Outcome], cover: Cover, done: "_Done") -> None:
        proofs: list[StoredProof] = []
        rules: list[Rule] = []
        limit = max(self.options.limits_ms)
        for work, outcome in zip(batch, outcomes, strict=True):
            for v in outcome.verdicts:
                opinions = tuple(Proof(*p) for p in v.opinions)
                about = (work.pattern, v.replacement, v.required, v.preserves, v.verdict, v.reason)
                proofs.append(StoredProof(*about, opinions, limit, v.ms, v.example, v.policy, v.assumes))
                setattr(self.report, v.verdict, getattr(self.report, v.verdict) + 1)
            rules += outcome.rules
            for goal in work.goals:
                if goal.target in outcome.improved:
                    done.states[goal.target] = "improved"
                    done.use(outcome.improved[goal.target], goal.count)
        self.report.new_rules += self.store.add_results(proofs, rules)
        for rule in rules:
            cover.add(rule)


@dataclass(slots=True)
class _Done:
    """What is known of targets at the end of a search: their new states, and how often each rule (by digest) was of use."""

    states: dict[int, str] = field(default_factory=dict)
    uses: dict[str, int] = field(default_factory=dict)

    def use(self, digest: str, count: int) -> None:
        """Count a rule's uses."""
        self.uses[digest] = self.uses.get(digest, 0) + count


def _uncovered(targets: Sequence[PendingTarget], cover: Cover, done: _Done, below: Rank) -> list[PendingTarget]:
    """The targets that no rule of a rank under *below* improves; the others are done."""
    left = []
    for target in targets:
        digest = cover.improving(target.text, target.live, below)
        if digest is None:
            left.append(target)
        else:
            done.states[target.id] = "covered"
            done.use(digest, target.count)
    return left


@dataclass(slots=True)
class _Stopwatch:
    """Adds the time of its body to *seconds*[*name*], also when it is left early."""

    seconds: dict[str, float]
    name: str
    start: float = 0.0

    def __enter__(self) -> None:
        self.start = monotonic()

    def __exit__(self, *_: object) -> None:
        self.seconds[self.name] = round(self.seconds.get(self.name, 0.0) + monotonic() - self.start, 2)


def _plain(opinions: Iterable[Proof]) -> tuple[tuple[str, str, str, int, str], ...]:
    return tuple((p.encoding, p.solver, p.version, p.limit_ms, p.query_digest) for p in opinions)


def _content(file: Path) -> tuple[str | None, str]:
    """SHA-256 of an ELF file, or why it is none."""
    try:
        with file.open("rb") as stream:
            if stream.read(4) != b"\x7fELF":
                return None, "not ELF"
            stream.seek(0)
            return hashlib.file_digest(stream, "sha256").hexdigest(), ""
    except OSError as problem:
        return None, f"unreadable: {problem.strerror}"


def _harvest_task(task: tuple[str, int]) -> Harvest | str:
    """The harvest of one file, or why there is none."""
    path, longest = task
    try:
        return harvest(Path(path), longest)
    except ElfError as problem:
        return str(problem).partition(": ")[2].partition(";")[0] or str(problem)


_worker: list[Worker] = []
"""The process's worker; filled by the pool's initializer."""


def _start_worker(cache: Path | None, limits_ms: tuple[int, ...]) -> None:
    _worker.append(Worker(cache, limits_ms))


def _prove_task(works: Sequence[Work]) -> list[Outcome]:
    return [_worker[0].prove(work) for work in works]
