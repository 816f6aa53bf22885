"""Levels: distinct states, the cheapest way to each."""

import numpy as np
import pytest

from ruledb.machine.constant import Symbol
from ruledb.machine.registers import FLAGS
from ruledb.search.alphabet import alphabet
from ruledb.search.evaluate import Evaluator
from ruledb.search.level import Search
from ruledb.search.states import UNIVERSES

FAMILIES = UNIVERSES[2]
AF = np.uint8(1 << FLAGS.index("AF"))


@pytest.fixture(scope="module")
def search(library):
    """Levels 0 to 2 over two registers."""
    letters = alphabet(FAMILIES, (0, 1, -1, Symbol(0)))
    made = Search(Evaluator(library, FAMILIES), FAMILIES, letters, [0] * len(letters))
    made.expand()
    made.expand()
    return made


def rows(values, flags):
    """One row of bytes a state: all locations but AF, on all search states."""
    columns = np.concatenate([values.reshape(-1, values.shape[-1]), (flags & ~AF).astype(np.uint64)])
    return [column.tobytes() for column in np.ascontiguousarray(columns.T)]


def test_no_state_is_there_twice(search):
    """All states of all levels differ in some location on some search state."""
    everything = [row for level in search.levels for row in rows(level.values, level.flags)]
    assert len(everything) == len(set(everything)) > 10_000


def test_every_result_is_there_as_cheap_as_it_comes(search):
    """Whatever a letter makes of a state of the level below is a state of this level or a lower one; here none cheaper was dropped."""
    cost = {}
    for level in search.levels[:2]:
        cost |= dict(zip(rows(level.values, level.flags), level.costs.tolist(), strict=True))
    old = search.levels[0]
    for number, dear in enumerate(search.costs.tolist()):
        new, flags = search.apply(number, old)
        values = old.values.copy()
        for slot, row in zip(search.bounds[number].outputs, new, strict=True):
            values[slot] = row
        (row,) = rows(values, flags)
        assert cost[row] <= dear


@pytest.mark.parametrize("depth", [1, 2])
def test_a_sequence_reaches_its_state(search, depth):
    """Running a state's sequence gives the state, and its cost and masks are those of its letters."""
    level = search.levels[depth]
    by_instruction = {x.instruction: i for i, x in enumerate(search.letters)}
    for state in range(0, level.n, max(1, level.n // 300)):
        sequence = search.sequence(depth, state)
        registers, flags = search.evaluator.run(sequence, search.states)
        assert np.array_equal(registers, level.values[:, :, state])
        assert np.array_equal(flags, level.flags[:, state])
        numbers = [by_instruction[i] for i in sequence]
        assert level.costs[state] == search.costs[numbers].sum()
        assert level.masks[state] == np.bitwise_or.reduce(search.masks[numbers])


def test_levels_are_the_same_every_time(search, library):
    """A second search has the same states in the same order."""
    again = Search(Evaluator(library, FAMILIES), FAMILIES, search.letters, [0] * len(search.letters))
    again.expand()
    assert np.array_equal(again.levels[1].letter, search.levels[1].letter)
    assert np.array_equal(again.levels[1].hashes, search.levels[1].hashes)
