"""What training and the commands ask of the database. A method that writes is one transaction: all of it is kept, or nothing."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Engine, bindparam, case, delete, func, insert, or_, select, true, update
from sqlalchemy.orm import Session

from ruledb.machine.canonical import text_digest
from ruledb.machine.instruction import parse_sequence, sequence_text
from ruledb.machine.registers import mask_text, parse_mask
from ruledb.machine.rule import Proof, Rule
from ruledb.store.models import Binary, Counterexample, ProofRow, RuleRow, Run, Target, Unit, Window

__all__ = ["HarvestedWindow", "PendingTarget", "Store", "StoredProof", "query_key"]

_OPEN = {"state": "pending", "size_length": 0, "time_length": 0}
"""A target that nobody has searched for."""

_REACH = {"size": Target.size_length, "time": Target.time_length}
"""Cost model → how far targets were searched under it."""

_CHUNK = 400
"""Keys a query: below the number of variables that any database allows."""


@dataclass(frozen=True, slots=True)
class HarvestedWindow:
    """A window of one binary under one live-out set."""

    text: str
    literal: bool
    length: int
    live: int
    count: int
    witness: str
    constants: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PendingTarget:
    """A target still to be searched."""

    id: int
    text: str
    literal: bool
    length: int
    live: int
    count: int
    witness: str
    constants: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class StoredProof:
    """
    A verdict to be kept: ``proved``, ``refuted`` or ``unknown``; *example* (inputs, locations, confirmed) where there is one. What is
    proved with memory holds under *policy* and what it *assumes*.
    """

    pattern: str
    replacement: str
    required: int
    preserves: int
    verdict: str
    reason: str
    opinions: tuple[Proof, ...]
    limit_ms: int
    ms: float
    example: tuple[dict[str, int], int, bool] | None = None
    policy: str = "none"
    assumes: tuple[str, ...] = ()

    @property
    def query(self) -> str:
        """Identity of what was asked."""
        return query_key(self.pattern, self.replacement, self.required)


def query_key(pattern: str, replacement: str, required: int) -> str:
    """Identity of the question whether *replacement* may stand for *pattern* where *required* is live."""
    return text_digest(f"{pattern} => {replacement} | {mask_text(required)}")


def _proof_list(proofs: Iterable[Proof]) -> list[list[Any]]:
    return [[p.encoding, p.solver, p.version, p.limit_ms, p.query_digest] for p in proofs]


class Store:
    """The database behind an engine; *semantics* is the digest of the meaning in force."""

    def __init__(self, engine: Engine, semantics: str) -> None:
        self.engine, self.semantics = engine, semantics

    # runs and units

    def start_run(self, options: dict[str, Any]) -> int:
        """Record a run and return its number."""
        with Session(self.engine) as session, session.begin():
            run = Run(options=options)
            session.add(run)
            session.flush()
            return run.id

    def finish_run(self, run: int, result: dict[str, Any]) -> None:
        """Record what a run came to."""
        with Session(self.engine) as session, session.begin():
            session.execute(update(Run).where(Run.id == run).values(finished=datetime.now(UTC), result=result))

    def unit(self, key: str) -> dict[str, Any] | None:
        """The result of the unit called *key*, or None where it is still to be done."""
        with Session(self.engine) as session:
            return session.scalar(select(Unit.result).where(Unit.key == key))

    def finish_unit(self, key: str, kind: str, run: int, seconds: float, result: dict[str, Any]) -> None:
        """Record that a unit is done."""
        with Session(self.engine) as session, session.begin():
            session.add(Unit(key=key, kind=kind, run_id=run, seconds=seconds, result=result))

    # harvest

    def known_binaries(self, longest: int) -> set[str]:
        """SHA-256 of the binaries harvested with windows of at least *longest* instructions."""
        with Session(self.engine) as session:
            return set(session.scalars(select(Binary.sha256).where(Binary.longest >= longest)))

    def add_binary(self, path: str, longest: int, facts: dict[str, Any], windows: Sequence[HarvestedWindow]) -> None:
        """Record a binary and add its windows to those known. One that was harvested with shorter windows counts once more."""
        digests = {(w.text, w.literal): text_digest(f"{w.literal} {w.text}") for w in windows}
        with Session(self.engine) as session, session.begin():
            session.execute(delete(Binary).where(Binary.sha256 == facts["sha256"]))
            session.add(Binary(path=path, longest=longest, **facts))
            ids = self._window_ids(session, windows, digests)
            self._add_targets(session, windows, {key: ids[digest] for key, digest in digests.items()})

    def _window_ids(self, session: Session, windows: Sequence[HarvestedWindow], digests: dict[tuple[str, bool], str]) -> dict[str, int]:
        counts: dict[str, int] = {}
        lengths: dict[str, int] = {}
        for w in windows:
            digest = digests[w.text, w.literal]
            counts[digest] = counts.get(digest, 0) + w.count
            lengths[digest] = w.length
        known = _select_in(session, (Window.digest, Window.id), Window.digest, list(counts))
        new = [
            {"digest": digest, "text": text, "literal": literal, "length": lengths[digest], "count": counts[digest]}
            for (text, literal), digest in digests.items()
            if digest not in known
        ]
        if new:
            session.execute(insert(Window), new)
        _add_counts(session, Window, {known[d]: n for d, n in counts.items() if d in known})
        return _select_in(session, (Window.digest, Window.id), Window.digest, list(counts))

    def _add_targets(self, session: Session, windows: Sequence[HarvestedWindow], ids: dict[tuple[str, bool], int]) -> None:
        rows = {(ids[w.text, w.literal], mask_text(w.live)): w for w in windows}
        known: dict[tuple[int, str], int] = {}
        window_ids = sorted({key[0] for key in rows})
        for start in range(0, len(window_ids), _CHUNK):
            part = window_ids[start : start + _CHUNK]
            found = session.execute(select(Target.window_id, Target.live, Target.id).where(Target.window_id.in_(part)))
            known |= {(window, live): id_ for window, live, id_ in found}
        new = [
            {
                "window_id": key[0],
                "live": key[1],
                "count": w.count,
                "witness": w.witness,
                "constants": list(w.constants),
                "state": "pending",
            }
            for key, w in rows.items()
            if key not in known
        ]
        if new:
            session.execute(insert(Target), new)
        _add_counts(session, Target, {known[key]: w.count for key, w in rows.items() if key in known})

    def totals(self) -> dict[str, int]:
        """Number of windows, targets and rules, and of proofs by verdict."""
        with Session(self.engine) as session:
            verdicts = dict(session.execute(select(ProofRow.verdict, func.count()).group_by(ProofRow.verdict)).tuples().all())
            return {
                "windows": session.scalar(select(func.count()).select_from(Window)) or 0,
                "targets": session.scalar(select(func.count()).select_from(Target)) or 0,
                "rules": session.scalar(select(func.count()).select_from(RuleRow)) or 0,
                **{verdict: verdicts.get(verdict, 0) for verdict in ("proved", "refuted", "unknown")},
            }

    # targets

    def pending(self, lengths: Sequence[int]) -> list[PendingTarget]:
        """Targets still to be searched with windows of the given lengths, in a fixed order."""
        query = (
            select(Target.id, Window.text, Window.literal, Window.length, Target.live, Target.count, Target.witness, Target.constants)
            .join(Window, Window.id == Target.window_id)
            .where(Target.state == "pending", Window.length.in_(lengths))
            .order_by(Window.length, Window.literal, Window.digest, Target.live)
        )
        with Session(self.engine) as session:
            return [
                PendingTarget(i, text, literal, length, parse_mask(live), count, witness, tuple(constants))
                for i, text, literal, length, live, count, witness, constants in session.execute(query)
            ]

    def reopen_targets(self, models: Sequence[str], length: int) -> None:
        """Open the targets that were searched for shorter replacements, for other cost models, or under another meaning."""
        columns = [_REACH[model] for model in models]
        further = true() if self.stale_rules() else or_(*(column < length for column in columns))
        with self.engine.begin() as connection:
            connection.execute(update(Target).where(Target.state != "pending", further).values(state="pending"))

    def finish_targets(self, states: dict[int, str], uses: dict[str, int], models: Sequence[str], length: int) -> None:
        """Set the states of targets by id, searched under *models* up to *length*; count uses of rules by digest."""
        target, rule = Target.__table__, RuleRow.__table__
        reach = {_REACH[model].key: case((_REACH[model] < length, length), else_=_REACH[model]) for model in models}
        with self.engine.begin() as connection:
            if states:
                statement = update(target).where(target.c.id == bindparam("key")).values(state=bindparam("new"), **reach)  # type: ignore[arg-type]  # a Table
                connection.execute(statement, [{"key": key, "new": state} for key, state in states.items()])
            if uses:
                statement = update(rule).where(rule.c.digest == bindparam("key")).values(uses=rule.c.uses + bindparam("more"))  # type: ignore[arg-type]  # a Table
                connection.execute(statement, [{"key": key, "more": n} for key, n in uses.items()])

    # proofs and rules

    def proofs(self, keys: Iterable[str]) -> dict[str, StoredProof]:
        """The stored verdicts among *keys* (`query_key`) that were made under the meaning in force."""
        found: dict[str, StoredProof] = {}
        wanted = sorted(set(keys))
        with Session(self.engine) as session:
            for start in range(0, len(wanted), _CHUNK):
                query = select(ProofRow).where(ProofRow.query.in_(wanted[start : start + _CHUNK]), ProofRow.semantics == self.semantics)
                for row in session.scalars(query):
                    found[row.query] = StoredProof(
                        row.pattern,
                        row.replacement,
                        parse_mask(row.required),
                        parse_mask(row.preserves),
                        row.verdict,
                        row.reason,
                        tuple(Proof(*p) for p in row.opinions),
                        row.limit_ms,
                        row.ms,
                        policy=row.policy,
                        assumes=tuple(row.assumes),
                    )
        return found

    def add_results(self, proofs: Sequence[StoredProof], rules: Sequence[Rule]) -> int:
        """Keep verdicts and the rules that came of them; return how many rules are new."""
        with Session(self.engine) as session, session.begin():
            for proof in proofs:
                self._add_proof(session, proof)
            session.flush()
            return sum(self._add_rule(session, rule) for rule in rules)

    def _add_proof(self, session: Session, proof: StoredProof) -> None:
        session.execute(delete(ProofRow).where(ProofRow.query == proof.query))
        row = ProofRow(
            query=proof.query,
            pattern=proof.pattern,
            replacement=proof.replacement,
            required=mask_text(proof.required),
            preserves=mask_text(proof.preserves),
            verdict=proof.verdict,
            reason=proof.reason,
            opinions=_proof_list(proof.opinions),
            limit_ms=proof.limit_ms,
            ms=proof.ms,
            policy=proof.policy,
            assumes=list(proof.assumes),
            semantics=self.semantics,
        )
        session.add(row)
        if proof.example is not None:
            session.flush()
            inputs, locations, confirmed = proof.example
            shown = {name: hex(value) for name, value in inputs.items()}
            session.add(Counterexample(proof_id=row.id, inputs=shown, locations=mask_text(locations), confirmed=confirmed))

    def _add_rule(self, session: Session, rule: Rule) -> bool:
        """Keep a rule; one that is there already preserves what either proof says."""
        row = session.scalar(select(RuleRow).where(RuleRow.digest == rule.digest))
        if row is not None and row.semantics == self.semantics:
            known = _rule(row)
            if rule.preserves & ~known.preserves:
                merged = known.merged(rule)
                row.preserves, row.proofs = mask_text(merged.preserves), _proof_list(merged.proofs)
            return False
        if row is not None:
            session.delete(row)
            session.flush()
        session.add(
            RuleRow(
                digest=rule.digest,
                pattern=sequence_text(rule.pattern),
                replacement=sequence_text(rule.replacement),
                preserves=mask_text(rule.preserves),
                size=list(rule.size),
                time=list(rule.time),
                march=rule.march,
                policy=rule.policy,
                assumes=list(rule.assumes),
                guards=list(rule.guards),
                facts=list(rule.facts),
                positions=list(rule.positions),
                branch=rule.branch,
                witness=rule.witness,
                uses=rule.uses,
                proofs=_proof_list(rule.proofs),
                semantics=self.semantics,
            )
        )
        return True

    def rules(self, *, stale: bool = False) -> Iterator[Rule]:
        """The rules proved under the meaning in force (with *stale*: all), by digest."""
        query = select(RuleRow).order_by(RuleRow.digest)
        with Session(self.engine) as session:
            for row in session.scalars(query if stale else query.where(RuleRow.semantics == self.semantics)):
                yield _rule(row)

    def stale_rules(self) -> int:
        """Number of rules that were proved under another meaning."""
        with Session(self.engine) as session:
            return session.scalar(select(func.count()).select_from(RuleRow).where(RuleRow.semantics != self.semantics)) or 0

    def rule(self, digest: str) -> Rule | None:
        """The one rule whose digest starts with *digest*, or None."""
        with Session(self.engine) as session:
            rows = session.scalars(select(RuleRow).where(RuleRow.digest.startswith(digest, autoescape=True)).limit(2)).all()
            return _rule(rows[0]) if len(rows) == 1 else None

    def rules_for(self, pattern: str) -> list[Rule]:
        """Rules of a canonical pattern."""
        with Session(self.engine) as session:
            query = select(RuleRow).where(RuleRow.pattern == pattern, RuleRow.semantics == self.semantics).order_by(RuleRow.digest)
            return [_rule(row) for row in session.scalars(query)]

    def sightings(self, pattern: str) -> list[tuple[str, int, str]]:
        """Where a pattern was seen: live-out set, how often, first witness."""
        query = (
            select(Target.live, Target.count, Target.witness)
            .join(Window, Window.id == Target.window_id)
            .where(Window.text == pattern)
            .order_by(Target.count.desc(), Target.live)
        )
        with Session(self.engine) as session:
            return [tuple(row) for row in session.execute(query)]  # type: ignore[misc]  # three columns

    def unknowns(self) -> list[tuple[str, str, str]]:
        """Queries that stayed undecided: pattern, replacement, reason."""
        query = (
            select(ProofRow.pattern, ProofRow.replacement, ProofRow.reason).where(ProofRow.verdict == "unknown").order_by(ProofRow.query)
        )
        with Session(self.engine) as session:
            return [tuple(row) for row in session.execute(query)]  # type: ignore[misc]  # three columns


def _rule(row: RuleRow) -> Rule:
    return Rule(
        pattern=parse_sequence(row.pattern),
        replacement=parse_sequence(row.replacement),
        preserves=parse_mask(row.preserves),
        size=(row.size[0], row.size[1]),
        time=(row.time[0], row.time[1], row.time[2], row.time[3]),
        march=row.march,
        policy=row.policy,
        assumes=tuple(row.assumes),
        guards=tuple(row.guards),
        facts=tuple(row.facts),
        positions=tuple(row.positions),
        branch=row.branch,
        proofs=tuple(Proof(*p) for p in row.proofs),
        witness=row.witness,
        uses=row.uses,
    )


def _select_in(session: Session, columns: tuple[Any, Any], key: Any, values: Sequence[Any]) -> dict[Any, int]:
    found: dict[Any, int] = {}
    for start in range(0, len(values), _CHUNK):
        found |= dict(session.execute(select(*columns).where(key.in_(values[start : start + _CHUNK]))).tuples().all())
    return found


def _add_counts(session: Session, table: type[Window] | type[Target], counts: dict[int, int]) -> None:
    """Add to the *count* of rows by id."""
    if counts:
        t = table.__table__
        statement = update(t).where(t.c.id == bindparam("key")).values(count=t.c.count + bindparam("more"))  # type: ignore[arg-type]  # a Table
        session.connection().execute(statement, [{"key": key, "more": n} for key, n in counts.items()])
