"""Levels of the instruction set."""

from itertools import pairwise

from ruledb.machine.march import BASELINE, LEVELS, SILENT, available
from ruledb.semantics.forms import FORMS


def test_levels_grow():
    """Each level has what the one below it has; the lowest has nothing beyond the baseline."""
    assert not LEVELS[BASELINE]
    assert all(lower < higher for lower, higher in pairwise(LEVELS.values()))


def test_a_processor_has_what_its_code_shows():
    """What a pattern contains is there, whatever the level."""
    assert available(BASELINE, frozenset({"adx"})) == {"adx"}
    assert available("x86-64-v2", frozenset({"bmi1"})) == {"popcnt", "bmi1"}


def test_every_feature_is_named():
    """Forms need features of the levels, or adx, which no level has; what is silent is a form."""
    needed = {form.needs for forms in FORMS.values() for form in forms} - {""}
    assert needed == LEVELS["x86-64-v3"] | {"adx"}
    assert FORMS.keys() >= SILENT
