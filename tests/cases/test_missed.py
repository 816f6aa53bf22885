"""Windows that compilers leave behind: a search finds something as good as what the reports ask for."""

import json

import pytest
from reading import FOLDER, cases, is_solved, measures

from ruledb.checking import check

MISSED = {case.id: case for case in cases("missed", "expected")}
SEARCHED = {name: case for name, case in MISSED.items() if case.is_searched}
SOLVED = json.loads((FOLDER / "solved.json").read_text(encoding="utf-8"))
"""Names of cases: *quick*, those of every run; *kept*, those that a whole run must solve."""


def test_the_lists_name_cases():
    """Every name is a case, once."""
    for names in SOLVED.values():
        assert len(set(names)) == len(names)
        assert set(names) <= SEARCHED.keys()
    assert set(SOLVED["quick"]) <= set(SOLVED["kept"])


@pytest.mark.parametrize("case", MISSED.values(), ids=str)
def test_what_the_report_asks_for_is_equivalent_and_better(case, prover):
    """The expected window is never refuted, and better by every measure that the case names."""
    answer = check(case.window, case.other, case.live, case.scratch, prover, march=case.march)
    assert answer.verdict in ("equivalent", "unknown"), answer.reason
    ours, theirs = measures(case.window), measures(case.other)
    named = [name for name in case.better_by if name in ("bytes", "instructions")]
    assert all(theirs[name] < ours[name] for name in named)


@pytest.mark.parametrize("name", SOLVED["quick"])
def test_quick_cases_are_solved(library, name):
    """A search of seconds improves the window at least as much as the report asks, by one of its measures."""
    assert is_solved(MISSED[name], library, 60)


@pytest.mark.long
def test_most_cases_are_solved(library):
    """Four of five cases that the search has kernels for are solved within a minute each, and none of those that were is lost."""
    solved = {name for name, case in SEARCHED.items() if is_solved(case, library, 60)}
    assert len(solved) >= 0.8 * len(SEARCHED), sorted(SEARCHED.keys() - solved)
    assert set(SOLVED["kept"]) - solved == set()
