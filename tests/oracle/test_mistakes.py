"""Every output of every form matters: a mistake in any one of them is caught."""

import numpy as np
import pytest
from conformance import Recorded, compare, directed_states, random_states
from engines import native_reason, processor
from form_list import Case, cases, shape
from mistakes import Mistake, mistaken, mistakes
from pysmt.environment import Environment

from ruledb.proof.oracle import Oracle
from ruledb.semantics import forms as table
from ruledb.semantics.forms import FORMS, Form, bind
from ruledb.semantics.terms import Terms

_NONE_AT_ALL = {("shr", "SF", "never set"), ("cmpxchg", 1, "always written")}
"""What is no mistake: zeros shifted in leave no sign, and without a shift SF stays; cmpxchg leaves rax alone where it equals the new value."""

_ELSEWHERE = {"below", "top", "frame", "label"}
"""Kinds of operands in memory, and of jumps: mistakes in those, and in divisions, are made in `test_memory_mutants`."""

_EDGES, _RANDOM, _TRIES = 1_500, 500, 12


def _runner():
    return Oracle() if native_reason() else processor()


def _by_form(mnemonic: str) -> list[tuple[Form, list[Case]]]:
    """The forms of *mnemonic* that have cases, each with one case of every shape first."""
    bound = [(bind(c.instruction).form, c) for c in cases() if c.instruction.mnemonic == mnemonic]
    grouped = []
    for form in FORMS[mnemonic]:
        mine = [c for f, c in bound if f is form]
        seen: set = set()
        firsts = [c for c in mine if not (shape(c) in seen or seen.add(shape(c)))]
        grouped += [(form, [*firsts, *(c for c in mine if c not in firsts)])] if mine else []
    return grouped


def _made(form: Form, some: list[Case]) -> list[Mistake]:
    """The mistakes that a form can hold, over its cases."""
    t, found = Terms(Environment()), {}
    for case in some[:_TRIES]:
        bound = bind(case.instruction)
        pairs = zip(form.slots, bound.widths, strict=True)
        operands = [
            t.const(1, 8) if slot.kinds == ("1",) else t.symbol(f"o{i}_{width}", width)
            for i, (slot, width) in enumerate(pairs)
            if slot.reads
        ]
        effect = form.semantics(t, *operands, *(t.symbol(name, 1) for name in form.reads))
        found |= {(m.location, m.name): m for m in mistakes(effect, t) if (form.mnemonic, m.location, m.name) not in _NONE_AT_ALL}
    return list(found.values())


class _Runs:
    """States of cases and the rows after them, run once for all mistakes."""

    def __init__(self) -> None:
        self.runner, self.known = _runner(), {}

    def of(self, case: Case) -> tuple[np.ndarray, Recorded]:
        if case.text not in self.known:
            edges = directed_states(case)
            picked = np.random.default_rng(15).choice(len(edges), min(len(edges), _EDGES), replace=False)
            states = np.concatenate([edges[picked], random_states(_RANDOM, seed=16)])
            self.known[case.text] = states, Recorded(self.runner.run_table(case.code, states))
        return self.known[case.text]


def _survives(monkeypatch, runs: _Runs, form: Form, some: list[Case], mistake: Mistake) -> bool:
    wrong = tuple(mistaken(f, mistake) if f is form else f for f in FORMS[form.mnemonic])
    with monkeypatch.context() as patch:
        patch.setitem(table.FORMS, form.mnemonic, wrong)
        return not any(compare(record, c, states) for c in some for states, record in [runs.of(c)])


@pytest.mark.parametrize("mnemonic", FORMS)
def test_every_output_matters(monkeypatch, mnemonic):
    """Each result and each flag of each form, inverted, stuck, never or always written, makes terms and machine differ."""
    runs = _Runs()
    made = [(form, some, mistake) for form, some in _by_form(mnemonic) for mistake in _made(form, some)]
    survivors = [(some[0].text, m.location, m.name) for form, some, m in made if _survives(monkeypatch, runs, form, some, m)]
    assert survivors == []


def _is_elsewhere(kind: str) -> bool:
    return kind in _ELSEWHERE or kind == "m" or (kind[0] == "m" and kind[1:].isdigit())


def test_every_form_has_cases():
    """No line of the table on registers and immediates is left without mistakes."""
    everything = [form for mnemonic, forms in FORMS.items() if mnemonic not in ("div", "idiv") for form in forms]
    on_registers = [f for f in everything if not any(all(map(_is_elsewhere, slot.kinds)) for slot in f.slots)]
    covered = [form for mnemonic in FORMS for form, _ in _by_form(mnemonic)]
    assert [f for f in on_registers if not any(f is c for c in covered)] == []
