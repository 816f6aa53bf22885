"""The report: fixed keys for programs, a short table for people."""

import json

import pytest

from rewriter.driver import Result, Rewrite
from rewriter.report import explanation, report_json, table

DONE = Rewrite(0x1139, 0x1143, "ab" * 16, "mov eax, 0; mov ecx, 0", "xor eax, eax; xor ecx, ecx", "rax", 6, 0, 1)
DELETED = Rewrite(0x1200, 0x1203, "cd" * 16, "mov rax, rax", "", "rax CF", 3, 1, 1)
RESULT = Result(
    b"",
    4000,
    1000,
    12,
    {"indirect jump": 2},
    (DONE, DELETED),
    {"live flags": 5, "cfi": 1},
    {"ab" * 16: {"live flags": 5}},
    2,
    {"read": 0.25, "match": 0.5},
)


def test_the_report_has_the_fixed_keys():
    """The JSON object has the keys of the command line's contract, in their order, with the totals of its rewrites."""
    report = json.loads(report_json(RESULT, "a.out", "a.out.opt"))
    assert list(report) == [
        "input", "output", "text_bytes", "instructions", "functions", "rewrites", "bytes_saved", "instructions_removed", "refused",
        "refused_rules",        "passes", "seconds",
    ]  # fmt: skip
    assert report["functions"] == {"seen": 12, "opaque": {"indirect jump": 2}}
    assert (report["bytes_saved"], report["instructions_removed"]) == (9, 1)
    assert report["rewrites"][0] == {
        "address": 0x1139,
        "end": 0x1143,
        "rule": DONE.rule,
        "before": DONE.before,
        "after": DONE.after,
        "live_out": "rax",
        "policy": "none",
        "assumes": [],
        "march": "x86-64",
        "bytes_saved": 6,
        "cycles_saved": 1,
    }


def test_the_table_fits_a_terminal():
    """No line of the table is wider than 80 columns, however long the names are."""
    for output in ("a.out.opt", "/" + "x" * 200, "/a directory/" * 12):
        assert max(map(len, table(RESULT, output).splitlines())) <= 80


def test_the_table_tells_the_totals():
    """The table is golden."""
    assert table(RESULT, "a.out.opt").splitlines() == [
        "output     a.out.opt",
        "code       4,000 bytes, 1,000 instructions",
        "functions  12, of which 2 left alone (indirect jump 2)",
        "rewrites   2 in 2 passes",
        "saved      9 bytes (0.23 %), 1 instructions",
        "refused    6 (live flags 5, cfi 1)",
        "time       0.75 s",
    ]


def test_explanations_show_both_sides():
    """Each rewrite is told with its address, its rule, and its instructions before and after."""
    assert list(explanation(RESULT)) == [
        f"0x1139: rule {DONE.rule}, 6 bytes saved",
        "  - mov eax, 0",
        "  - mov ecx, 0",
        "  + xor eax, eax",
        "  + xor ecx, ecx",
        f"0x1200: rule {DELETED.rule}, 3 bytes saved",
        "  - mov rax, rax",
    ]


@pytest.mark.parametrize("output", ["a.out.opt", None])
def test_the_report_names_what_was_written(output):
    """Where nothing is written, the output is null."""
    assert json.loads(report_json(RESULT, "a.out", output))["output"] == output
