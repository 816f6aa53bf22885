"""What a replacement may not do, whatever it computes: write other registers, need another processor, jump elsewhere."""

from collections.abc import Sequence
from functools import lru_cache

from ruledb.machine.instruction import Instruction, Label
from ruledb.machine.march import BASELINE, SILENT, available
from ruledb.machine.registers import families_of, family_mask, mask_text
from ruledb.semantics.forms import FORMS, features
from ruledb.semantics.symbolic import reads_and_writes

__all__ = ["doubtful", "foreign_writes", "refusal", "written_families"]


def written_families(instructions: Sequence[Instruction]) -> frozenset[int]:
    """Families that *instructions* may write."""
    return frozenset().union(*map(_written, instructions))


@lru_cache(maxsize=1 << 14)
def _written(instruction: Instruction) -> frozenset[int]:
    return frozenset(families_of(reads_and_writes(instruction)[1]))


def foreign_writes(pattern: Sequence[Instruction], replacement: Sequence[Instruction], scratch: int = 0) -> int:
    """Mask of the families that *replacement* writes although neither *pattern* does nor *scratch* allows it."""
    foreign = written_families(replacement) - written_families(pattern) - set(families_of(scratch))
    return sum(family_mask(f) for f in foreign)


_FEATURES = frozenset(form.needs for forms in FORMS.values() for form in forms) - {""}


def _needs(instructions: Sequence[Instruction]) -> frozenset[str]:
    return frozenset().union(*(features(i) & _FEATURES for i in instructions))


def doubtful(pattern: Sequence[Instruction], march: str = BASELINE) -> str:
    """Why nobody knows what *pattern* means on a processor of level *march*; empty where it is known."""
    silent = [i for i in pattern if i.mnemonic in SILENT and not _needs((i,)) <= available(march, frozenset())]
    return f"{silent[0]} is another instruction on some processors of level {march}; give --march x86-64-v3" if silent else ""


def refusal(pattern: Sequence[Instruction], replacement: Sequence[Instruction], scratch: int = 0, march: str = BASELINE) -> str:
    """Why *replacement* may not stand for *pattern*, whatever it computes; empty where it may."""
    if foreign := foreign_writes(pattern, replacement, scratch):
        return f"scratch: the replacement writes {mask_text(foreign)}, which the pattern does not write"
    shown = _needs([i for i in pattern if i.mnemonic not in SILENT])
    if missing := _needs(replacement) - available(march, shown):
        return f"march: the replacement needs {', '.join(sorted(missing))}, which {march} does not have"
    one, other = (_jumps(side) for side in (pattern, replacement))
    if one != other:
        return f"branch: the window jumps to {', '.join(one) or 'nowhere'}, the replacement to {', '.join(other) or 'nowhere'}"
    return ""


def _jumps(side: Sequence[Instruction]) -> list[str]:
    """Targets of the jumps of *side*; one that does not close it has its position."""
    found = [(i, o.name) for i, instruction in enumerate(side) for o in instruction.operands if isinstance(o, Label)]
    return [name if i == len(side) - 1 else f"{name} from instruction {i + 1}" for i, name in found]
