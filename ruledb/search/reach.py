"""Which modelled instructions the search has kernels for: the one switch between what can be proved and what is searched."""

from functools import lru_cache

from ruledb.machine.instruction import Instruction
from ruledb.semantics.forms import features

__all__ = ["SEARCHED", "unsearched"]

SEARCHED: frozenset[str] = frozenset({"memory", "rip", "branch"})
"""Features (`ruledb.semantics.forms.features`) that kernels and the harvest know, besides registers and flags."""


@lru_cache(maxsize=1 << 16)
def unsearched(instruction: Instruction) -> frozenset[str]:
    """
    The features of *instruction* that the search has no kernels for; empty where it can be searched.

    Raises:
        UnmodelledForm: It has no semantics at all.

    """
    return features(instruction) - SEARCHED
