"""Training comes to the same rules however often it is interrupted, and does nothing twice."""

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing, suppress
from time import monotonic, sleep

import pytest
from trainings import FILES, SHAPE, claims, open_store, url_of

from ruledb.campaign import Form
from ruledb.cost import size_of, time_of
from ruledb.machine.canonical import bind, canonicalise, example_families
from ruledb.machine.policy import read_conditions
from ruledb.machine.registers import mask_text
from ruledb.proof.oracle import Oracle
from ruledb.proof.prover import foreign_writes
from ruledb.proof.replay import replay_rule
from ruledb.training import train


def test_training_learns_rules(trained):
    """The report counts what the database holds, and every stage has its time."""
    store, report = trained
    assert report.complete
    assert report.rules == report.new_rules == len(list(store.rules())) > 10
    assert (report.files, report.skipped, report.quarantined) == (2, {}, 0)
    assert report.instructions > 500
    assert report.proved >= report.rules
    assert {"harvest", "plan", "search", "prove"} <= report.seconds.keys()
    assert report.as_json()["candidates_per_second"] > 0
    totals = store.totals()
    assert (report.windows, report.targets) == (totals["windows"], totals["targets"])
    assert all(Form.of(t.text).arity > SHAPE["registers"] for t in store.pending(range(1, 7)))


def test_every_rule_is_proved_twice_seen_and_cheaper(trained, prover):
    """Two opinions, a place where the pattern was seen, uses, and a saving by one of the models, canonical both ways."""
    oracle = Oracle()
    for rule in trained[0].rules():
        assert [p.solver for p in rule.proofs[:2]] == ["bitwuzla", "z3"]
        assert len({p.query_digest for p in rule.proofs}) == len(rule.proofs)
        file, _, address = rule.witness.partition(":0x")
        assert file in FILES
        assert int(address, 16)
        assert rule.uses > 0
        assert rule.size > (0, 0) or rule.time > (0, 0, 0, 0)
        assert foreign_writes(rule.pattern, rule.replacement) == 0
        assert any(canonicalise(rule.pattern, literal=x).instructions == rule.pattern for x in (False, True))
        conditions = read_conditions(rule.policy, rule.assumes)
        query, _ = prover.query(rule.pattern, rule.replacement, 0, conditions)
        assert not replay_rule(oracle, rule.pattern, rule.replacement, rule.preserves & query.defined, conditions).differing


def test_the_saving_is_that_of_small_constants(trained):
    """What a rule says that it saves is what its sides cost with one-byte constants on example registers, at least in sign."""
    for rule in trained[0].rules():
        families = example_families((*rule.pattern, *rule.replacement))
        sides = [bind(side, families, (29,) * len(rule.constant_bits)) for side in (rule.pattern, rule.replacement)]
        sizes = [size_of(side) for side in sides]
        times = [time_of(side, size[0]) for side, size in zip(sides, sizes, strict=True)]
        assert sizes[1] < sizes[0] or times[1] < times[0] or rule.constant_bits


def test_a_second_run_does_nothing(trained, files, options):
    """Nothing is harvested, enumerated or proved again, and no rule is new."""
    store, first = trained
    before, start = claims(store), monotonic()
    again = train(store, files, options())
    assert monotonic() - start < 5
    assert (again.candidates, again.matches, again.proved, again.refuted, again.unknown, again.new_rules) == (0, 0, 0, 0, 0, 0)
    assert (again.files, again.windows, again.targets, again.rules) == (first.files, first.windows, first.targets, first.rules)
    assert claims(store) == before


SCRIPT = """
import sys
from pathlib import Path
from ruledb.semantics.digest import semantics_digest
from ruledb.store.database import open_engine
from ruledb.store.store import Store
from ruledb.training import Options, train
if __name__ == "__main__":
    url, cache, *files = sys.argv[1:]
    options = Options(**{shape}, cache=Path(cache))
    train(Store(open_engine(url), semantics_digest()), [Path(f) for f in files], options)
"""


def count(database, table):
    """Rows of a table that another process may be writing."""
    with suppress(sqlite3.OperationalError), closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        return connection.execute(f"select count(*) from {table}").fetchone()[0]
    return 0


def kill_when(table, folder, cache, files, environment):
    """Start a training, and kill it with all its processes as soon as it has written a row of *table* more than there was."""
    script = folder / "run.py"
    script.write_text(SCRIPT.format(shape=SHAPE))
    database = folder / "training.sqlite"
    before = count(database, table)
    process = subprocess.Popen([sys.executable, script, url_of(folder), cache, *files], env=environment, start_new_session=True)
    while process.poll() is None and count(database, table) <= before:
        sleep(0.02)
    assert process.poll() is None, "the training ended before it could be killed"
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@pytest.mark.parametrize(
    "moments",
    [
        pytest.param(("rules",), id="first rules"),
        pytest.param(("binaries",), id="first binary", marks=pytest.mark.long),
        pytest.param(("units",), id="first search", marks=pytest.mark.long),
        pytest.param(("binaries", "units", "proofs", "proofs"), id="often", marks=pytest.mark.long),
    ],
)
def test_a_training_that_is_killed_comes_to_the_same(trained, tmp_path, files, options, kernel_cache, repository_on_path, moments):
    """Killed at any moment and started again, training has the rules of a run that was left alone, with the same uses."""
    for table in moments:
        kill_when(table, tmp_path, kernel_cache, files, repository_on_path)
    store = open_store(tmp_path)
    assert claims(store) < claims(trained[0])
    assert train(store, files, options()).complete
    assert claims(store) == claims(trained[0])
    assert {r.digest: r.uses for r in store.rules()} == {r.digest: r.uses for r in trained[0].rules()}
    assert train(store, files, options()).candidates == 0


def test_a_budget_stops_and_can_be_resumed(trained, fresh, files, options):
    """A run that stops by its budget says so, and further runs come to the same rules."""
    runs = [train(fresh, files, options(budget_s=0.05)), train(fresh, files, options(budget_s=3))]
    assert not runs[0].complete
    last = train(fresh, files, options())
    assert last.complete
    assert claims(fresh) == claims(trained[0])


@pytest.mark.long
def test_the_order_of_files_does_not_matter(trained, fresh, files, options):
    """Rules are the same whichever file comes first, or alone before the other."""
    train(fresh, files[::-1], options())
    assert claims(fresh) == claims(trained[0])


@pytest.mark.long
def test_jobs_do_not_matter(trained, fresh, files, options):
    """One process and two come to the same."""
    train(fresh, files, options(jobs=1))
    assert claims(fresh) == claims(trained[0])


@pytest.mark.long
@pytest.mark.parametrize("less", [{"registers": 1}, {"window": 2}, {"models": ("size",)}])
def test_a_larger_search_later_comes_to_the_same(trained, fresh, files, options, less):
    """A training with fewer registers, shorter windows or replacements does not keep a later one from what it left out."""
    train(fresh, files, options(**less))
    train(fresh, files, options())
    patterns = {mask_text(r.preserves) + str(r.pattern) for r in trained[0].rules()}
    assert patterns <= {mask_text(r.preserves) + str(r.pattern) for r in fresh.rules()}


def test_files_that_are_no_binaries_are_counted(fresh, tmp_path, corpus, options):
    """What is not ELF, cut short, or for another machine is skipped and counted by reason; copies are known."""
    folder = tmp_path / "files"
    folder.mkdir()
    binary = (corpus / "vm-O0").read_bytes()
    (folder / "notes.txt").write_text("no binary")
    (folder / "empty").write_bytes(b"")
    (folder / "short").write_bytes(binary[:100])
    (folder / "other").write_bytes(binary[:18] + b"\xb7\x00" + binary[20:])
    shutil.copy(corpus / "vm-O0", folder / "one")
    shutil.copy(corpus / "vm-O0", folder / "two")
    report = train(fresh, [folder], options(window=1))
    assert report.skipped["not ELF"] == 2
    assert sum(report.skipped.values()) == 4
    assert report.files == 2
    assert all("\n" not in reason for reason in report.skipped)
    assert report.instructions < 300


def test_a_path_that_is_not_there_is_an_error(fresh, tmp_path, options):
    """The message names the path."""
    with pytest.raises(FileNotFoundError, match="no such file or directory"):
        train(fresh, [tmp_path / "none"], options())
