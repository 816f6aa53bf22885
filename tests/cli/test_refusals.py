"""Bad input ends in one clear line on standard error and exit code 2: the golden files hold the lines."""

import os
from pathlib import Path

import pytest
from asm import RULES
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import text
from trainings import open_store

from ruledb.machine.rulefile import rule_file_text
from ruledb.request import RequestError, live_mask, read_window, register_list

GOLDEN = Path(__file__).parent / "golden"

REFUSED = {
    "no-such-command": "frobnicate",
    "no-such-option": "rules --colour blue",
    "missing-argument": "check;mov eax, 1",
    "unknown-mnemonic": "check;frob eax, 1;mov eax, 1",
    "no-instruction": "optimize;  ; # nothing",
    "nothing-to-replace": "check;;nop",
    "not-an-instruction": "optimize;add! eax, 1",
    "no-such-operands": "optimize;add eax, rbx",
    "wrong-number-of-operands": "optimize;mov eax",
    "immediate-too-large": "optimize;add rax, 0x123456789",
    "unknown-register": "optimize;mov foo, 1",
    "canonical-register": "optimize;mov r0d, 1",
    "symbolic-constant": "optimize;add eax, c0",
    "bad-live-out": "check;mov eax, 1;mov eax, 1;--live-out;eax, foo",
    "flag-in-live-out": "check;mov eax, 1;mov eax, 1;--live-out;CF",
    "bad-live-flags": "check;mov eax, 1;mov eax, 1;--live-flags;CF DF",
    "bad-scratch": "optimize;mov eax, 1;--scratch;xmm0",
    "bad-cost": "optimize;mov eax, 1;--cost;beauty",
    "bad-march": "optimize;mov eax, 1;--march;arm64",
    "bad-length": "optimize;mov eax, 1;--length;9",
    "bad-timeout": "optimize;mov eax, 1;--timeout;soon",
    "bad-jobs": "optimize;mov eax, 1;--jobs;0",
    "train-nothing": "train",
    "train-missing-path": "train;{tmp}/none",
    "train-bad-budget": "train;{tmp};--budget;soon",
    "train-bad-cost": "train;{tmp};--cost;beauty",
    "train-bad-window": "train;{tmp};--window;7",
    "rules-bad-sort": "rules;--sort;beauty",
    "rules-bad-top": "rules;--top;0",
    "bad-url": "rules;--db;nonsense",
    "other-database": "rules;--db;mysql://host/name",
    "bad-port": "rules;--db;postgresql://host:port/name",
    "newer-schema": "rules;--db;sqlite:///{tmp}/newer/training.sqlite",
    "not-a-database": "rules;--db;sqlite:///{tmp}/notes.txt",
    "no-such-rule": "show;12345678",
    "no-such-rule-query": "show;12345678;--smt2",
    "verify-missing-file": "verify;{tmp}/none.rules",
    "verify-not-a-rule-file": "verify;{tmp}/notes.txt",
    "verify-changed-file": "verify;{tmp}/changed.rules",
    "verify-other-format": "verify;{tmp}/format.rules",
    "verify-unknown-solver": "verify;--solver;oracle",
    "import-not-a-rule-file": "import;{tmp}/notes.txt",
    "import-folder": "import;{tmp}",
    "export-nowhere": "export;{tmp}/notes.txt/out.rules",
    "coverage-nothing": "coverage",
    "coverage-missing-file": "coverage;{tmp}/none",
    "coverage-folder": "coverage;{tmp}",
    "coverage-not-elf": "coverage;{tmp}/notes.txt",
    "bench-missing-path": "bench;enumerate;{tmp}/none",
}


@pytest.fixture
def place(tmp_path):
    """A folder with files that are not what they should be."""
    (tmp_path / "notes.txt").write_text("some notes, no rule file, no binary, and no database, however long they get\n" * 20)
    whole = rule_file_text(RULES, "meaning")
    (tmp_path / "changed.rules").write_text(whole.replace("inc", "dec"))
    (tmp_path / "format.rules").write_text(whole.replace("ruledb-rules 1", "ruledb-rules 9"))
    (tmp_path / "newer").mkdir()
    engine = open_store(tmp_path / "newer").engine
    with engine.begin() as connection:
        connection.execute(text("update alembic_version set version_num = '9999'"))
    engine.dispose()
    return tmp_path


@pytest.mark.parametrize("name", REFUSED)
def test_bad_input_is_refused_in_one_line(ruledb, place, name):
    """Exit code 2, one line on standard error as in the golden file, nothing on standard output."""
    given = REFUSED[name].split(";") if ";" in REFUSED[name] else REFUSED[name].split()
    if name == "no-instruction":
        given = ["optimize", "  ; # nothing"]
    code, out, err = ruledb(*(a.format(tmp=place) for a in given))
    assert (code, out) == (2, "")
    assert err.startswith("ruledb: ")
    assert err.count("\n") == 1
    assert err.endswith("\n")
    assert "Traceback" not in err
    shown = err.replace(str(place), "TMP")
    golden = GOLDEN / f"{name}.txt"
    if os.environ.get("BLESS") == "1":
        GOLDEN.mkdir(exist_ok=True)
        golden.write_text(shown)
    assert shown == golden.read_text()


def test_every_golden_file_belongs_to_a_refusal():
    """No message is left over."""
    assert {p.stem for p in GOLDEN.iterdir()} == set(REFUSED)


PIECES = (
    "mov",
    "add",
    "eax",
    "rbx",
    "ah",
    "r8b",
    ",",
    " ",
    "[",
    "]",
    "*",
    "+",
    "-",
    "0x",
    "9",
    "ptr",
    "qword",
    "c0",
    "(",
    ")",
    "\n",
    "jne",
    "rip",
    ":",
    "xmm0",
    "~",
    "é",
)


@given(st.lists(st.sampled_from(PIECES), max_size=10).map("".join) | st.text(max_size=20))
def test_any_text_is_a_window_or_refused(words):
    """Whatever is given as assembly is read, or refused by the one error that becomes a line."""
    try:
        window = read_window(words)
    except RequestError as refused:
        assert str(refused)  # noqa: PT017  # either outcome is right
    else:
        assert window


@given(st.lists(st.sampled_from((*PIECES, "CF", "rax[63:32]", "r0", "all")), max_size=6).map(" ".join) | st.text(max_size=12))
def test_any_list_of_registers_is_a_mask_or_refused(words):
    """Lists of registers and flags are read, or refused by the one error that becomes a line."""
    for read in (lambda: register_list("--live-out", words), lambda: live_mask((), None, words)):
        try:
            mask = read()
        except RequestError as refused:
            assert str(refused)  # noqa: PT017  # either outcome is right
        else:
            assert mask >= 0
