"""What each command does, as functions from values to plain data. No printing, no exit codes."""

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import Any

from platformdirs import user_cache_path

from ruledb.bench import measure_enumeration
from ruledb.bench_rewrite import measure_rewriting
from ruledb.checking import check as check_windows
from ruledb.checking import seen_json, state_json
from ruledb.cost import size_of, time_of
from ruledb.coverage import cover
from ruledb.machine.canonical import bind, canonicalise, to_canonical_mask
from ruledb.machine.codec import CodecError
from ruledb.machine.files import write_whole
from ruledb.machine.instruction import Instruction, sequence_text
from ruledb.machine.march import BASELINE, LEVELS
from ruledb.machine.places import remember_rules
from ruledb.machine.policy import read_conditions
from ruledb.machine.registers import mask_text
from ruledb.machine.rule import Rule
from ruledb.machine.rulefile import read_rule_file, rule_file_text, rule_from_json, rule_to_json
from ruledb.optimizer import COSTS, Goal, Seen, improve
from ruledb.parallel import in_order, worker_pool
from ruledb.progress import stage
from ruledb.proof.prover import FIRST, SECOND, Prover, Undecided
from ruledb.proof.query import query_text
from ruledb.proof.solvers import SOLVERS
from ruledb.request import RequestError, conditions_of, live_mask, read_window, register_list, unsearchable
from ruledb.search.kernels import KernelLibrary
from ruledb.semantics.digest import semantics_digest
from ruledb.site_proofs import prove_sites, verdict_of
from ruledb.store.database import default_url, open_engine, rules_path
from ruledb.store.store import Store
from ruledb.training import Options
from ruledb.training import train as train_store

__all__ = [
    "CommandError",
    "bench_enumerate",
    "bench_rewrite",
    "check",
    "coverage",
    "export",
    "import_",
    "optimize",
    "query",
    "rules",
    "show",
    "train",
    "verify",
    "verify_sites",
]

MAX_FAMILIES = 6
"""Registers of a window that `optimize` searches for."""


class CommandError(ValueError):
    """A command cannot do what it was asked; the message says what was given and what to do."""


def kernel_cache() -> Path:
    """Where compiled kernels are kept."""
    return Path(user_cache_path("ruledb")) / "kernels"


def _store(db: str | None) -> Store:
    return Store(open_engine(db), semantics_digest())


def train(
    db: str | None,
    paths: Sequence[Path],
    shape: dict[str, Any],
    jobs: int | None,
    budget_s: float | None,
    rules_out: Path | None,
    *,
    quiet: bool,
) -> tuple[dict[str, Any], Path]:
    """Train, export the rule file, and return the report and where the file is."""
    store = _store(db)
    options = Options(**shape, jobs=jobs or os.cpu_count() or 1, budget_s=budget_s, cache=kernel_cache(), quiet=quiet)
    report = train_store(store, paths, options).as_json()
    target = rules_out or rules_path(db or default_url())
    write_whole(target, rule_file_text(store.rules(), store.semantics).encode())
    remember_rules(target)
    report["unknown_queries"] = [" | ".join(row) for row in store.unknowns()]
    return report, target


def _figures(instructions: Sequence[Instruction]) -> dict[str, int]:
    n_bytes, n = size_of(instructions)
    return {"instructions": n, "bytes": n_bytes, "cycles": time_of(instructions, n_bytes)[1]}


def optimize(
    db: str | None,
    text: str,
    live_out: str | None,
    live_flags: str | None,
    scratch: str | None,
    cost: str,
    length: int,
    timeout_s: float,
    jobs: int | None,
    march: str = BASELINE,
) -> dict[str, Any]:
    """The cheapest equivalent of a window, by the keys of the command's JSON."""
    window = read_window(text)
    live = live_mask(window, live_out, live_flags)
    dead = register_list("--scratch", scratch) if scratch else 0
    answer: dict[str, Any] = {
        "status": "unsupported",
        "input": [str(i) for i in window],
        "replacement": None,
        "before": None,
        "after": None,
    }
    answer |= {"proof": None, "searched": {"length": 0, "candidates": 0}, "reason": unsearchable(window)}
    if answer["reason"]:
        return answer
    answer["before"] = _figures(window)
    goal = Goal(window, live, dead)
    seen = Seen.of(goal)
    if seen is None:
        return answer | {"reason": "its accesses to memory are not searched: each needs an operand, and one width for each place"}
    known = _known(_store(db), goal, cost, march)
    if known is not None:
        rule, replacement = known
        first, second = rule.proofs[0], rule.proofs[-1]
        proof = {"verdict": "proved", "solver": first.solver, "second_solver": second.solver, "ms": 0.0}
        return answer | {"status": "improved", "replacement": [str(i) for i in replacement], "after": _figures(replacement), "proof": proof}
    if len(seen.goal.families) > MAX_FAMILIES:
        return answer | {
            "status": "unsupported",
            "reason": f"{len(seen.goal.families)} registers and places; a search has room for {MAX_FAMILIES}",
        }
    found = improve(KernelLibrary(kernel_cache()), goal, cost, length=length, timeout_s=timeout_s, jobs=jobs or os.cpu_count() or 1)
    answer["searched"] = {"length": found.length, "candidates": found.candidates}
    answer["reason"] = found.reason
    if found.replacement is None or found.proof is None:
        return answer | {"status": "optimal" if found.complete else "gave-up"}
    proofs = found.proof.proofs
    proof = {"verdict": "proved", "solver": proofs[0].solver, "second_solver": proofs[-1].solver, "ms": round(found.proof.ms, 1)}
    shown = [str(i) for i in found.replacement]
    return answer | {"status": "improved", "replacement": shown, "after": _figures(found.replacement), "proof": proof}


def _known(store: Store, goal: Goal, cost: str, march: str) -> tuple[Rule, tuple[Instruction, ...]] | None:
    """The best stored rule for exactly this window, and what it makes of it."""
    model = COSTS[cost]
    best: tuple[Any, Rule, tuple[Instruction, ...]] | None = None
    for literal in (False, True):
        canonical = canonicalise(goal.instructions, literal=literal)
        if canonical is None:
            continue
        constants = [c for c in canonical.constants if isinstance(c, int)]
        for rule in store.rules_for(canonical.text):
            is_wrong_level = not LEVELS.get(rule.march, frozenset({rule.march})) <= LEVELS[march]
            # What a rule assumes of memory nobody has promised here.
            if (
                is_wrong_level
                or rule.policy not in ("none", "strict")
                or to_canonical_mask(goal.live, canonical, rule.touched) & ~rule.preserves
            ):
                continue
            try:
                replacement = bind(rule.replacement, canonical.families, constants)
                after = model(replacement)
            except (CodecError, ValueError):
                continue
            if after < model(goal.instructions) and (best is None or after < best[0]):
                best = after, rule, replacement
    return best[1:] if best is not None else None


def check(
    text1: str,
    text2: str,
    live_out: str | None,
    live_flags: str | None,
    scratch: str | None,
    *,
    policy: str = "strict",
    assume: Sequence[str] = (),
    march: str = BASELINE,
    is_memory_live: bool = True,
) -> dict[str, Any]:
    """Whether the second window may replace the first, by the keys of the command's JSON."""
    left, right = read_window(text1), read_window(text2, may_be_empty=True)
    live = live_mask(left, live_out, live_flags)
    dead = register_list("--scratch", scratch) if scratch else 0
    conditions = conditions_of(policy, assume)
    options: dict[str, Any] = {"conditions": conditions, "march": march, "is_memory_live": is_memory_live}
    answer = check_windows(left, right, live, dead, Prover(), **options)
    data: dict[str, Any] = {"verdict": answer.verdict, "counterexample": None, "left": None, "right": None, "reason": answer.reason}
    if answer.state is not None:
        data["counterexample"] = state_json(answer.state, memory=answer.memory)
    if answer.left is not None and answer.right is not None:
        data |= {"left": seen_json(answer.left, live), "right": seen_json(answer.right, live)}
    return data


_SORTS = {
    "saving": lambda r: (r["saved_bytes"] + r["saved_cycles"]) * r["uses"],
    "uses": lambda r: r["uses"],
    "bytes": lambda r: r["saved_bytes"],
    "cycles": lambda r: r["saved_cycles"],
}


def _summary(rule: Rule) -> dict[str, Any]:
    return {
        "digest": rule.digest,
        "pattern": sequence_text(rule.pattern),
        "replacement": sequence_text(rule.replacement),
        "live_out": mask_text(rule.preserves),
        "guards": list(rule.guards),
        "policy": rule.policy,
        "assumes": list(rule.assumes),
        "march": rule.march,
        "saved_bytes": rule.size[0],
        "saved_cycles": rule.time[1],
        "uses": rule.uses,
    }


def rules(db: str | None, top: int, sort: str) -> list[dict[str, Any]]:
    """The first *top* rules by *sort*, the largest first, ties by digest."""
    every = sorted((_summary(r) for r in _store(db).rules()), key=lambda r: r["digest"])
    return sorted(every, key=_SORTS[sort], reverse=True)[:top]


def _rule(store: Store, digest: str) -> Rule:
    rule = store.rule(digest)
    if rule is None:
        raise CommandError(f"rule {digest}: not one rule starts so; expected a digest as 'ruledb rules' shows it, or more of it")
    return rule


def show(db: str | None, digest: str) -> dict[str, Any]:
    """One rule, whole."""
    store = _store(db)
    rule = _rule(store, digest)
    proofs = [
        {"encoding": p.encoding, "solver": f"{p.solver} {p.version}", "limit_ms": p.limit_ms, "query": p.query_digest} for p in rule.proofs
    ]
    seen = [{"live": live, "count": n, "first": witness} for live, n, witness in store.sightings(sequence_text(rule.pattern))]
    return _summary(rule) | {
        "dead": rule.dead,
        "constants": [f"c{i}: {bits} bits, signed" for i, bits in enumerate(rule.constant_bits)],
        "saved_time": list(rule.time),
        "witness": rule.witness,
        "proofs": proofs,
        "seen": seen,
    }


def query(db: str | None, digest: str) -> str:
    """SMT-LIB text of a rule's query: unsatisfiable, since the rule is proved."""
    rule = _rule(_store(db), digest)
    made, mask = Prover().query(rule.pattern, rule.replacement, rule.preserves, read_conditions(rule.policy, rule.assumes))
    return query_text(made, mask)


def verify(db: str | None, file: Path | None, solver: str, jobs: int | None) -> dict[str, Any]:
    """Prove rules again, with one solver on both encodings."""
    _require_solver(solver)
    start = monotonic()
    if file is not None:
        content = read_rule_file(file)
        given, stale = list(content.rules), len(content.rules) if content.semantics != semantics_digest() else 0
    else:
        store = _store(db)
        given, stale = list(store.rules(stale=True)), store.stale_rules()
    verdicts = list(_proved(given, ((FIRST[0], solver), (SECOND[0], solver)), jobs))
    failures = [
        f"{rule.digest[:8]} {verdict}: {reason}: {rule.text}" for rule, (verdict, reason) in zip(given, verdicts, strict=True) if reason
    ]
    counts = {name: sum(v == name for v, _ in verdicts) for name in ("proved", "refuted", "unknown")}
    return {"rules": len(given), **counts, "stale": stale, "failures": failures, "seconds": round(monotonic() - start, 2)}


def _require_solver(solver: str) -> None:
    if solver not in SOLVERS:
        raise RequestError(f"--solver {solver}: expected {' or '.join(SOLVERS)}")


def _proved(given: Sequence[Rule], opinions: tuple[tuple[str, str], tuple[str, str]], jobs: int | None) -> Iterable[tuple[str, str]]:
    """Verdict and reason of every rule, in order, by worker processes."""
    tasks = [(rule_to_json(rule), opinions) for rule in given]
    with stage("verify", len(tasks)) as advance, worker_pool(jobs) as pool:
        for verdict in in_order(pool, _prove_again, tasks):
            advance(1)
            yield verdict


def _prove_again(task: tuple[dict[str, Any], tuple[tuple[str, str], tuple[str, str]]]) -> tuple[str, str]:
    data, opinions = task
    rule = rule_from_json(data)
    try:
        conditions = read_conditions(rule.policy, rule.assumes)
    except ValueError as problem:
        return "refuted", f"{problem}"
    first, second = opinions
    # Each encoding is the whole claim: where the solver cannot decide one, the other alone does.
    for prover in (Prover((1000, 20000), first, second), Prover((1000, 20000), second, None)):
        found = prover.prove(rule.pattern, rule.replacement, rule.preserves, plausible=0, conditions=conditions, march=rule.march)
        if not isinstance(found, Undecided):
            break
    return verdict_of(found)


def verify_sites(report: Path, solver: str, jobs: int | None) -> dict[str, Any]:
    """Prove the sites that a rewriter's report lists; what was proved before is not asked again."""
    _require_solver(solver)
    return prove_sites(report, solver, jobs, user_cache_path("ruledb") / "sites")


def export(db: str | None, file: Path) -> int:
    """Write the rule file and return the number of rules."""
    store = _store(db)
    found = list(store.rules())
    write_whole(file, rule_file_text(found, store.semantics).encode())
    return len(found)


def import_(db: str | None, file: Path, jobs: int | None) -> dict[str, Any]:
    """Prove the rules of a file and store those that hold."""
    content = read_rule_file(file)
    store = _store(db)
    accepted = [
        r for r, (verdict, _) in zip(content.rules, _proved(content.rules, (FIRST, SECOND), jobs), strict=True) if verdict == "proved"
    ]
    store.add_results((), [replace(r, uses=0) for r in accepted])
    return {"rules": len(accepted), "rejected": len(content.rules) - len(accepted)}


def coverage(paths: Sequence[Path]) -> dict[str, Any]:
    """What is modelled of the code in files, by the keys of the command's JSON; missing mnemonics most frequent first."""
    found = cover(paths)
    pairs, modelled_pairs = found.windows
    return {
        "files": len(paths),
        "instructions": found.instructions,
        "excluded": found.excluded,
        "counted": found.counted,
        "modelled": found.modelled,
        "share": round(found.share, 6),
        "windows": {"length": 2, "all": pairs, "modelled": modelled_pairs},
        "missing": [
            {"mnemonic": m.mnemonic, "count": m.count, "forms": [{"form": form, "count": n} for form, n in m.forms]} for m in found.missing
        ],
    }


def bench_enumerate(paths: Sequence[Path], registers: int, targets: int, jobs: int) -> dict[str, Any]:
    """Measure the search at length 3."""
    return measure_enumeration(KernelLibrary(kernel_cache()), paths, registers, targets, jobs)


def bench_rewrite(path: Path, rules: Path | None) -> dict[str, Any]:
    """Measure the rewriting of one file."""
    return measure_rewriting(path, rules)
