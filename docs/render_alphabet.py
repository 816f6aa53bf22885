"""
Print `docs/alphabet.md`: the alphabet of the search, from the rows in `ruledb.search.alphabet`.

    python docs/render_alphabet.py > docs/alphabet.md
"""

from collections.abc import Iterator, Sequence

from ruledb.campaign import CORE_CONSTANTS
from ruledb.machine.constant import constant_text
from ruledb.search.alphabet import DEEP_ROWS, ROWS, Row, alphabet
from ruledb.search.states import UNIVERSES

_HEAD = """\
# The alphabet

Every instruction that the search may put into a candidate. Generated from `ruledb/search/alphabet.py`;
`python docs/render_alphabet.py > docs/alphabet.md` makes it anew, and a test fails when this page is stale.

In operand shapes, `r` is a register of the row's width and `r8`, `r16`, `r32` one of that width, `other` and `pair` are two
different registers, `bytes` are the two low ones of a register, `high` is one of ah, bh, ch, dh, `imm` is any constant,
`constant` and `wide imm` any but 0, 1, -1, `count` is 1 or such a constant, and `s` is a scale of 1, 2, 4 or 8.
"""


def _table(rows: Sequence[Row]) -> Iterator[str]:
    yield "| mnemonics | operands | widths |"
    yield "| --- | --- | --- |"
    for row in rows:
        shape = f"`{row.shape}`" if row.shape else "implied"
        widths = "by name" if not row.shape else ", ".join(map(str, row.widths))
        yield f"| {' '.join(row.mnemonics)} | {shape} | {widths} |"


def _sizes(rows: Sequence[Row]) -> Iterator[str]:
    yield "| registers | instructions | mnemonics |"
    yield "| --- | ---: | ---: |"
    for n in (1, 2, 3, 4):
        letters = alphabet(UNIVERSES[n], CORE_CONSTANTS, rows)
        yield f"| {n} | {len(letters):,} | {len({letter.instruction.mnemonic for letter in letters})} |"


def page() -> str:
    """The text of the page."""
    constants = ", ".join(f"`{constant_text(c)}`" for c in CORE_CONSTANTS)
    return "\n".join(
        [
            _HEAD,
            "## Rows of every search\n",
            *_table(ROWS),
            f"\nSizes with the {len(CORE_CONSTANTS)} immediates {constants}:\n",
            *_sizes(ROWS),
            "\n## More rows, for the search of a single target\n",
            *_table(DEEP_ROWS),
            "\nSizes with the same immediates, both sets of rows together:\n",
            *_sizes(ROWS + DEEP_ROWS),
            "",
        ]
    )


if __name__ == "__main__":
    print(page(), end="")
