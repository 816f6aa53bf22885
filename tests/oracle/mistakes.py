"""
Mistakes made in every form alike, one output at a time: which the comparison must catch.

A mistake changes one result or one flag of a form's effect. Where the terms come out as they were, it is none and is not made.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from pysmt.fnode import FNode

from ruledb.semantics.forms import Form
from ruledb.semantics.terms import Effect, Output, Terms

Change = Callable[[Terms, Output], Output]


@dataclass(frozen=True)
class Mistake:
    """A change to one output: the number of a result, or a flag's name."""

    name: str
    location: int | str
    change: Change


def _flipped(bit: Callable[[int], int]) -> Change:
    """One bit of the value inverted."""

    def change(t: Terms, output: Output) -> Output:
        width = output.value.bv_width()
        return replace(output, value=t.xor(output.value, t.const(1 << bit(width), width)))

    return change


def _replaced(make: Callable[[Terms, FNode], FNode]) -> Change:
    return lambda t, output: replace(output, value=make(t, output.value))


_RESULT_CHANGES: dict[str, Change] = {
    "lowest bit inverted": _flipped(lambda _: 0),
    "highest bit inverted": _flipped(lambda width: width - 1),
    "always zero": _replaced(lambda t, value: t.const(0, value.bv_width())),
    "never written": lambda t, output: replace(output, written=t.const(0, 1)),
    "always written": lambda _, output: replace(output, written=None, specified=None),
}
_FLAG_CHANGES: dict[str, Change] = {
    "inverted": _flipped(lambda _: 0),
    "never set": _replaced(lambda t, _: t.const(0, 1)),
    "always set": _replaced(lambda t, _: t.const(1, 1)),
    "never written": lambda t, output: replace(output, written=t.const(0, 1), defined=None),
    "always written": lambda _, output: replace(output, written=None, defined=None),
}


def _differ(t: Terms, a: Output, b: Output) -> bool:
    """Whether two outputs are different, where a condition that is always true is as good as none."""
    always = t.const(1, 1)
    return any((getattr(a, name) or always) is not (getattr(b, name) or always) for name in ("value", "defined", "written", "specified"))


def mistakes(effect: Effect, t: Terms) -> Iterator[Mistake]:
    """The mistakes that change *effect*. A flag that is never defined has no value to be wrong."""
    for i, output in enumerate(effect.results):
        yield from (Mistake(name, i, change) for name, change in _RESULT_CHANGES.items() if _differ(t, change(t, output), output))
    for flag, output in effect.flags.items():
        if output.defined is not t.const(0, 1):
            yield from (Mistake(name, flag, change) for name, change in _FLAG_CHANGES.items() if _differ(t, change(t, output), output))


def mistaken(form: Form, mistake: Mistake) -> Form:
    """*form* with the mistake in it; its line allows every flag to be undefined, so that the comparison alone can catch it."""

    def semantics(t: Terms, *operands: FNode) -> Effect:
        effect = form.semantics(t, *operands)
        if isinstance(mistake.location, str):
            return Effect(effect.results, dict(effect.flags) | {mistake.location: mistake.change(t, effect.flags[mistake.location])})
        results = list(effect.results)
        results[mistake.location] = mistake.change(t, results[mistake.location])
        return Effect(tuple(results), effect.flags)

    return replace(form, semantics=semantics, undefined=form.writes)
