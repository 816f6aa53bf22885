"""The choice among overlapping candidates."""

from itertools import combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewriter.matcher import Candidate, Option
from rewriter.selector import choose
from ruledb.machine.window import Window


def candidate(start, end, saved, digest="a"):
    """A candidate of which only the place and the saving matter."""
    return Candidate(Window(start, end, (), (), 0), Option(digest, (), (), b"", 0, saved, 0, 0), b"")


def total(chosen):
    """What *chosen* save together."""
    return tuple(map(sum, zip(*(c.option.saved for c in chosen), strict=True))) if chosen else ()


def best_by_trying(candidates):
    """The greatest saving of any disjoint subset."""
    subsets = (s for n in range(len(candidates) + 1) for s in combinations(candidates, n))
    disjoint = (s for s in subsets if all(a.window.end <= b.window.start or b.window.end <= a.window.start for a, b in combinations(s, 2)))
    return max(map(total, disjoint))


_CANDIDATES = st.lists(
    st.builds(
        lambda start, n, saved: candidate(start, start + n, saved),
        st.integers(0, 9),
        st.integers(1, 5),
        st.tuples(st.integers(0, 3), st.integers(0, 3)).filter(any),
    ),
    max_size=7,
)


@given(_CANDIDATES)
def test_the_choice_saves_most(candidates):
    """No other disjoint subset saves more, compared element by element; and the choice is disjoint and ascending."""
    chosen = choose(candidates)
    assert total(chosen) == best_by_trying(candidates)
    assert all(a.window.end <= b.window.start for a, b in pairwise(chosen))


@given(_CANDIDATES, st.randoms())
def test_the_choice_does_not_depend_on_the_order(candidates, random):
    """Shuffled candidates give the same choice."""
    shuffled = list(candidates)
    random.shuffle(shuffled)
    assert choose(shuffled) == choose(candidates)


@pytest.mark.parametrize(
    ("candidates", "expected"),
    [
        ([], []),
        ([(0, 4, (2, 0)), (4, 8, (2, 0)), (2, 6, (3, 0))], [0, 1]),
        ([(0, 4, (1, 0)), (4, 8, (1, 0)), (2, 6, (3, 0))], [2]),
        ([(0, 2, (1, 0)), (1, 3, (1, 0))], [0]),
    ],
)
def test_choices(candidates, expected):
    """Two that save more together beat one between them; of equals the one that ends earlier is taken."""
    given_ = [candidate(*c) for c in candidates]
    assert list(choose(given_)) == [given_[i] for i in expected]


def test_the_lower_digest_wins_a_tie():
    """Of equal savings at one place, the digest decides."""
    assert [c.option.digest for c in choose([candidate(0, 2, (1, 0), "b"), candidate(0, 2, (1, 0), "a")])] == ["a"]
