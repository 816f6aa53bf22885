"""Comparing two sequences on states: what the left side leaves undefined is free, what the right side does is not."""

import numpy as np
import pytest
from asm import mask, seq

from ruledb.machine.registers import ALL_FLAGS, FLAGS, family_mask, flags_of, mask_text
from ruledb.machine.states import directed_states
from ruledb.search.agreement import agreeing, undefined_flags
from ruledb.search.evaluate import Evaluator
from ruledb.search.states import UNIVERSES

FAMILIES = UNIVERSES[3]
EVERYTHING = sum(map(family_mask, FAMILIES)) | ALL_FLAGS


@pytest.mark.parametrize(
    ("left", "right", "differing"),
    [
        ("add eax, 1", "inc eax", "CF"),
        ("mov rax, rdx", "mov eax, edx", "rax[63:32]"),
        ("mov eax, edx", "mov rax, rdx", "rax[63:32]"),
        ("mov al, 0", "xor eax, eax", "rax[15:8] rax[31:16] rax[63:32] CF PF AF ZF SF OF"),
        ("and eax, eax", "test eax, eax", "rax[63:32]"),
        ("test eax, eax", "cmp eax, 0", "-"),
        ("cmp eax, 0", "test eax, eax", "AF"),
        ("and rax, rax", "test rax, rax", "-"),
        ("bt eax, 3", "test eax, 8", "CF ZF"),
        ("shl eax, 5", "shl eax, 5", "-"),
        ("shl eax, 1", "add eax, eax", "-"),
        ("add eax, eax", "shl eax, 1", "AF"),
        ("imul eax, edx", "imul edx, eax", "rax rdx"),
        ("xor eax, eax; xor edx, edx", "xor edx, edx; xor eax, eax", "-"),
    ],
)
def test_examples(library, left, right, differing):
    """Undefined flags of the left side agree with anything; undefined ones of the right side agree only with undefined ones."""
    evaluator = Evaluator(library, FAMILIES)
    agreed = agreeing(evaluator, seq(left), seq(right), directed_states(len(FAMILIES), ()))
    assert mask_text(EVERYTHING & ~agreed) == mask_text(mask(differing))


@pytest.mark.parametrize(
    ("text", "undefined"),
    [
        ("add eax, edx", ""),
        ("and eax, edx", "AF"),
        ("imul eax, edx", "PF AF ZF SF"),
        ("bt eax, 5", "PF AF SF OF"),
        ("shl eax, 5", "AF OF"),
        ("bsf eax, edx", "CF PF AF SF OF"),
    ],
)
def test_undefined_flags_are_known(library, text, undefined):
    """The flags that a sequence leaves undefined in some state are those of the manual."""
    some = np.bitwise_or.reduce(undefined_flags(Evaluator(library, FAMILIES), seq(text), directed_states(len(FAMILIES), ())))
    assert " ".join(name for i, name in enumerate(FLAGS) if some >> i & 1) == " ".join(flags_of(mask(undefined)))
