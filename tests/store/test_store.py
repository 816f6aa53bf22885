"""The store keeps what training finds: all of it or nothing, on either database."""

from dataclasses import replace

import pytest
from asm import ADD_TO_INC, LEA_TO_ADD, MOV_TO_XOR, PROOFS, RULES, mask, seq
from sqlalchemy import func, select
from sqlalchemy.exc import StatementError
from sqlalchemy.orm import Session

from ruledb.machine.registers import mask_text
from ruledb.machine.rulefile import rule_file_text
from ruledb.store.database import downgrade, open_engine
from ruledb.store.models import Binary, Counterexample, ProofRow, RuleRow, Target, Window
from ruledb.store.store import HarvestedWindow, Store, StoredProof, query_key

REACH = (("size", "time"), 2)
"""Cost models and length of replacements that targets were searched for."""

FACTS = {"sha256": "a" * 64, "n_bytes": 10, "n_instructions": 5, "n_functions": 1, "opaque": {"jump": 1}}


@pytest.fixture(params=["sqlite", "postgresql"])
def store(request, tmp_path):
    """A store on an empty database."""
    url = f"sqlite:///{tmp_path / 'store.sqlite'}" if request.param == "sqlite" else request.getfixturevalue("postgresql_url")
    engine = open_engine(url)
    yield Store(engine, "meaning")
    downgrade(engine, "base")
    engine.dispose()


def window(text, live="r0", count=1, *, literal=False, constants=(), witness="a:0x1"):
    """A harvested window."""
    return HarvestedWindow(text, literal, text.count(";") + 1, mask(live), count, witness, constants)


def count(store, table):
    """Number of rows."""
    with Session(store.engine) as session:
        return session.scalar(select(func.count()).select_from(table))


WINDOWS = (
    window("add r0d, c0", "r0 CF", 3, constants=(5,)),
    window("add r0d, c0", "r0", 4, constants=(7,)),
    window("add r0d, 5", "r0", 4, literal=True),
    window("mov r0, r1; mov r1, r0", "r0 r1", 2),
)


def test_windows_and_targets_are_counted(store):
    """A window counts over its live-out sets, a target for itself, and more binaries add up."""
    store.add_binary("one", 6, FACTS, WINDOWS)
    store.add_binary("two", 6, FACTS | {"sha256": "b" * 64}, WINDOWS[:2])
    totals = store.totals()
    assert (totals["windows"], totals["targets"]) == (3, 4)
    with Session(store.engine) as session:
        windows = dict(session.execute(select(Window.text, Window.count)).all())
    assert windows == {"add r0d, c0": 14, "add r0d, 5": 4, "mov r0, r1; mov r1, r0": 2}
    counts = {(t.text, mask_text(t.live)): t.count for t in store.pending((1, 2))}
    assert counts["add r0d, c0", "r0 CF"] == 6
    assert counts["add r0d, c0", "r0"] == 8
    assert counts["mov r0, r1; mov r1, r0", "r0 r1"] == 2


def test_literal_and_symbolic_windows_of_one_text_are_two(store):
    """A window without constants may be both."""
    store.add_binary("one", 6, FACTS, (window("inc r0d"), window("inc r0d", literal=True)))
    assert store.totals()["windows"] == 2


def test_binaries_are_known_by_content_and_length(store):
    """A binary harvested with short windows is not known to a run with longer ones."""
    store.add_binary("one", 3, FACTS, WINDOWS)
    assert store.known_binaries(3) == store.known_binaries(2) == {"a" * 64}
    assert store.known_binaries(4) == set()
    store.add_binary("one", 6, FACTS, WINDOWS)
    assert store.known_binaries(6) == {"a" * 64}
    assert count(store, Binary) == 1


def test_many_windows_are_stored_in_pieces(store):
    """More keys than a query may have are no problem, the second time either."""
    many = [window(f"add r0d, {i}", literal=True) for i in range(2, 1100)]
    for sha in "ab":
        store.add_binary(sha, 6, FACTS | {"sha256": sha * 64}, many)
    assert store.totals()["targets"] == len(many)
    assert {t.count for t in store.pending((1,))} == {2}


def test_pending_targets_come_in_a_fixed_order(store):
    """The order depends on the targets alone, short windows first; what is done is left out."""
    store.add_binary("one", 6, FACTS, WINDOWS)
    order = [(t.text, t.live) for t in store.pending((1, 2))]
    assert [text.count(";") for text, _ in order] == [0, 0, 0, 1]
    assert [t.text for t in store.pending((2,))] == ["mov r0, r1; mov r1, r0"]
    first = store.pending((1, 2))[0]
    assert first.constants in ((5,), (7,), ())
    store.finish_targets({first.id: "searched"}, {}, *REACH)
    assert [(t.text, t.live) for t in store.pending((1, 2))] == order[1:]


def test_the_order_does_not_depend_on_the_order_of_harvest(store, tmp_path):
    """Two databases with the same windows have the same order."""
    other = Store(open_engine(f"sqlite:///{tmp_path / 'other.sqlite'}"), "meaning")
    store.add_binary("one", 6, FACTS, WINDOWS)
    other.add_binary("one", 6, FACTS, WINDOWS[::-1])
    assert [(t.text, t.live) for t in store.pending((1, 2))] == [(t.text, t.live) for t in other.pending((1, 2))]
    other.engine.dispose()


def test_rules_come_back(store):
    """Every field of a rule is read as it was stored, by digest, by its start and by pattern."""
    assert store.add_results((), RULES) == len(RULES)
    assert list(store.rules()) == sorted(RULES, key=lambda r: r.digest)
    assert store.rule(ADD_TO_INC.digest[:9]) == ADD_TO_INC
    assert store.rule("") is None
    assert store.rule("%") is None
    assert store.rules_for("lea r0, [r0+c0]") == [LEA_TO_ADD]
    assert rule_file_text(store.rules(), "meaning") == rule_file_text(RULES, "meaning")
    assert store.totals()["rules"] == len(RULES)


def test_a_rule_that_comes_again_preserves_what_either_proof_says(store):
    """Neither a smaller nor another mask takes anything away."""
    one = replace(ADD_TO_INC, preserves=mask("r0 ZF"))
    for preserves, expected in (("r0 ZF", "r0 ZF"), ("r0 OF", "r0 ZF OF"), ("r0d", "r0 ZF OF"), ("r0 ZF SF OF", "r0 ZF SF OF")):
        store.add_results((), [replace(one, preserves=mask(preserves))])
        (row,) = store.rules()
        assert mask_text(row.preserves) == expected
        assert len(row.proofs) >= 2


def test_uses_add_up(store):
    """A rule's uses are counted when targets are finished, together with their states."""
    store.add_binary("one", 6, FACTS, WINDOWS)
    store.add_results((), [replace(ADD_TO_INC, uses=0)])
    ids = [t.id for t in store.pending((1,))]
    store.finish_targets({ids[0]: "improved"}, {ADD_TO_INC.digest: 3}, *REACH)
    store.finish_targets({ids[1]: "covered"}, {ADD_TO_INC.digest: 4}, *REACH)
    assert next(iter(store.rules())).uses == 7
    store.finish_targets({}, {}, *REACH)


def proof(verdict="refuted", replacement="inc r0d", example=None, **more):
    """A verdict to store."""
    given = {"preserves": 0, "reason": "differs in CF", "opinions": (), "limit_ms": 5000, "ms": 1.5} | more
    return StoredProof("add r0d, 1", replacement, mask("r0 CF"), verdict=verdict, example=example, **given)


def test_verdicts_come_back_by_their_question(store):
    """A verdict is found by pattern, replacement and what was required; a second one takes the place of the first."""
    asked = proof()
    other = proof("proved", "sub r0d, -1", preserves=mask("r0"), opinions=PROOFS)
    store.add_results([asked, other], ())
    keys = [asked.query, other.query, query_key("add r0d, 1", "inc r0d", mask("r0"))]
    assert store.proofs(keys) == {asked.query: asked, other.query: other}
    assert [store.totals()[v] for v in ("proved", "refuted", "unknown")] == [1, 1, 0]
    again = proof("unknown", reason="timeout")
    store.add_results([again], ())
    assert store.proofs(keys)[asked.query] == again
    assert store.unknowns() == [("add r0d, 1", "inc r0d", "timeout")]
    assert len(store.proofs(query_key("a", str(i), 0) for i in range(1000))) == 0


def test_counterexamples_go_with_their_verdicts(store):
    """All 64 bits of a counterexample are kept, and it leaves with its verdict."""
    example = ({"r16": (1 << 64) - 1, "CF": 1}, mask("CF"), True)
    store.add_results([proof(example=example)], ())
    with Session(store.engine) as session:
        row = session.scalars(select(Counterexample)).one()
        assert (row.inputs, row.locations, row.confirmed) == ({"r16": hex((1 << 64) - 1), "CF": "0x1"}, "CF", True)
    store.add_results([proof()], ())
    assert count(store, Counterexample) == 0


def test_another_meaning_knows_nothing(store):
    """Verdicts and rules of another semantics count as stale, and a new proof takes their place."""
    store.add_results([proof()], RULES)
    newer = Store(store.engine, "another meaning")
    assert newer.proofs([proof().query]) == {}
    assert newer.stale_rules() == len(RULES)
    assert newer.rules_for("add r0d, 1") == []
    assert newer.add_results((), [replace(ADD_TO_INC, preserves=mask("r0"))]) == 1
    assert newer.stale_rules() == len(RULES) - 1
    assert newer.rules_for("add r0d, 1")[0].preserves == mask("r0")


def test_units_and_runs_are_kept(store):
    """The result of a unit is there once it is finished, and only then."""
    run = store.start_run({"window": 3})
    assert store.unit("key") is None
    store.finish_unit("key", "search", run, 1.5, {"candidates": {"a": [1]}})
    assert store.unit("key") == {"candidates": {"a": [1]}}
    store.finish_run(run, {"rules": 3})
    assert store.start_run({}) != run


def test_sightings_are_those_of_the_pattern(store):
    """Where a pattern was seen: the most frequent live-out set first."""
    store.add_binary("one", 6, FACTS, WINDOWS)
    assert store.sightings("add r0d, c0") == [("r0", 4, "a:0x1"), ("r0 CF", 3, "a:0x1")]


class Broken(Exception):
    """A failure in the middle."""


def broken(*_, **__):
    """Fail."""
    raise Broken


@pytest.mark.parametrize(
    ("method", "call"),
    [
        ("_add_targets", lambda s: s.add_binary("one", 6, FACTS, WINDOWS)),
        ("_window_ids", lambda s: s.add_binary("one", 6, FACTS, WINDOWS)),
        ("_add_rule", lambda s: s.add_results([proof(example=({"r0": 1}, 1, True))], [MOV_TO_XOR])),
    ],
)
def test_a_failure_in_the_middle_leaves_nothing(store, monkeypatch, method, call):
    """What a method had written before it failed is gone."""
    monkeypatch.setattr(Store, method, broken)
    with pytest.raises(Broken):
        call(store)
    assert all(count(store, table) == 0 for table in (Binary, Window, Target, ProofRow, Counterexample, RuleRow))


def test_a_failure_in_the_second_rule_leaves_no_first(store):
    """A batch of rules is kept whole or not at all."""
    with pytest.raises(AttributeError):
        store.add_results((), [MOV_TO_XOR, None])
    assert list(store.rules()) == []
    with pytest.raises(AttributeError):
        store.add_results([proof(), None], [MOV_TO_XOR])
    assert store.totals()["rules"] == store.totals()["refuted"] == 0


def test_targets_and_uses_are_finished_together(store):
    """Where counting the uses fails the targets stay pending."""
    store.add_binary("one", 6, FACTS, WINDOWS)
    ids = [t.id for t in store.pending((1,))]
    with pytest.raises(StatementError):
        store.finish_targets(dict.fromkeys(ids, "searched"), {ADD_TO_INC.digest: object()}, *REACH)
    assert [t.id for t in store.pending((1,))] == ids


def test_rules_without_a_replacement_are_kept(store):
    """The empty replacement is a replacement."""
    empty = replace(MOV_TO_XOR, pattern=seq("mov r0, r0"), replacement=())
    store.add_results((), [empty])
    assert list(store.rules()) == [empty]


def test_rules_of_another_meaning_are_stale(store):
    """They are neither used nor exported, `stale_rules` counts them, and every target is open again."""
    store.add_binary("one", 6, FACTS, WINDOWS)
    store.add_results((), RULES)
    store.finish_targets({t.id: "searched" for t in store.pending((1, 2))}, {}, *REACH)
    changed = Store(store.engine, "another meaning")
    assert (list(changed.rules()), changed.stale_rules()) == ([], len(RULES))
    assert list(changed.rules(stale=True)) == list(store.rules())
    store.reopen_targets(*REACH)
    assert store.pending((1, 2)) == []
    changed.reopen_targets(*REACH)
    assert len(changed.pending((1, 2))) == len(WINDOWS)
    changed.add_results((), RULES[:1])
    assert list(changed.rules()) == list(RULES[:1])


def test_targets_are_open_for_a_larger_search(store):
    """What was searched under one cost model, or for shorter replacements, is pending again for more, and for nothing else."""
    store.add_binary("one", 6, FACTS, WINDOWS)
    store.finish_targets({t.id: "searched" for t in store.pending((1, 2))}, {}, ("size",), 2)
    for models, length, n_open in ((("size",), 2, 0), (("size",), 1, 0), (("time",), 1, 4), (("size",), 3, 4), (("size", "time"), 2, 4)):
        store.reopen_targets(models, length)
        opened = store.pending((1, 2))
        assert len(opened) == n_open, (models, length)
        store.finish_targets({t.id: "searched" for t in opened}, {}, ("size",), 2)
