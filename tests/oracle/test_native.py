"""What the processor itself does: every form on it, and where emulator and manual leave doubt; skipped on other hosts."""

from itertools import groupby

import numpy as np
import pytest
from conformance import compare, directed_states, random_states, states_of
from engines import native_reason, processor
from form_list import Case, assemble, cases, shape

from ruledb.machine.registers import FLAGS
from ruledb.proof.oracle import Oracle, flag_column
from ruledb.semantics.forms import FORMS

pytestmark = pytest.mark.skipif(bool(native_reason()), reason=native_reason() or "runs here")

_RAX, _RCX = 0, 1
_OLD = 0xDEADBEEF12345678
_SAMPLE = 2_000
_FULL, _FULL_VARIANT = 100_000, 5_000


def _rax_after(text: str) -> int:
    """Rax after *text* started with the old value in rax and 0 in rcx."""
    states = random_states(1)
    states[0, [_RAX, _RCX]] = _OLD, 0
    return int(processor().run(assemble([text])[0], states).states[0, _RAX])


@pytest.mark.parametrize("text", ["bsf eax, ecx", "bsr eax, ecx", "bsf rax, rcx", "bsf ax, cx"])
def test_scan_of_zero_keeps_the_whole_register(text):
    """A scan of 0 leaves all 64 bits of the destination, for a 32-bit destination too."""
    assert _rax_after(text) == _OLD


@pytest.mark.parametrize("text", ["shl eax, cl", "shl eax, 0", "rol eax, cl", "rol eax, 0", "shld eax, ecx, cl", "shld eax, ecx, 0"])
def test_count_zero_clears_the_upper_half(text):
    """A 32-bit shift, rotate or double shift by 0 clears bits 63..32."""
    assert _rax_after(text) == _OLD & 0xFFFFFFFF


def _chosen(mnemonic: str) -> list[tuple[Case, bool]]:
    """The cases of *mnemonic*, and whether each is the first of its operand kinds and widths."""
    mine = sorted((c for c in cases() if c.instruction.mnemonic == mnemonic), key=lambda c: str(shape(c)))
    return [(case, not i) for _, group in groupby(mine, key=shape) for i, case in enumerate(group)]


@pytest.mark.parametrize("mnemonic", FORMS)
def test_terms_equal_the_processor(mnemonic):
    """Every form agrees on 2,000 states, half of them from its edge values."""
    found = []
    for case, is_first in _chosen(mnemonic):
        if is_first:
            edges = directed_states(case)
            picked = np.random.default_rng(11).choice(len(edges), min(len(edges), _SAMPLE // 2), replace=False)
            found += compare(processor(), case, np.concatenate([edges[picked], random_states(_SAMPLE - len(picked), seed=12)]))
    assert found == []


@pytest.mark.oracle
@pytest.mark.parametrize("mnemonic", FORMS)
def test_terms_equal_the_processor_on_many_states(mnemonic):
    """Every form agrees on all pairs of bytes, all pairs of edge values and 100,000 random states; its variants on 5,000."""
    found = []
    for case, is_first in _chosen(mnemonic):
        found += compare(processor(), case, states_of(case, _FULL if is_first else _FULL_VARIANT))
    assert found == []


@pytest.mark.oracle
@pytest.mark.parametrize("mnemonic", [m for m in FORMS if m not in ("bsf", "bsr")])
def test_the_oracle_equals_the_processor_on_many_states(mnemonic):
    """The emulator that confirms counterexamples does what the processor does, on registers and on flags that are always defined."""
    oracle, found = Oracle(), []
    flags = [f for f in FLAGS if all(f not in form.undefined for form in FORMS[mnemonic])]
    for case, is_first in _chosen(mnemonic):
        if any(form.undefined >= set(FLAGS) for form in FORMS[mnemonic]) and case.instruction.operands[0].width == 16:
            continue  # shld and shrd by more than 16: the result is undefined, too
        states = states_of(case, _FULL if is_first else _FULL_VARIANT)
        ours, theirs = oracle.run_table(case.code, states), processor().run_table(case.code, states)
        found += [(case.text, r) for r in range(16) if (ours[:, r] != theirs[:, r]).any()]
        found += [(case.text, f) for f in flags if (flag_column(ours, f) != flag_column(theirs, f)).any()]
    assert found == []
