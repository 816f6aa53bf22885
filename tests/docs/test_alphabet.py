"""The page on the alphabet is fresh, and the alphabet is as rich as the search needs."""

import runpy
from pathlib import Path

from ruledb.campaign import CORE_CONSTANTS
from ruledb.machine.registers import Register
from ruledb.search.alphabet import alphabet
from ruledb.search.states import UNIVERSES

DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_is_fresh():
    """`docs/alphabet.md` is what its generator prints."""
    assert runpy.run_path(str(DOCS / "render_alphabet.py"))["page"]() == (DOCS / "alphabet.md").read_text(encoding="utf-8")


def test_the_alphabet_is_rich():
    """Four registers and six immediates make 2,400 instructions of 40 mnemonics and more, at 32 and 64 bits."""
    letters = alphabet(UNIVERSES[4], CORE_CONSTANTS)
    assert len(UNIVERSES[4]) == 4
    assert len(CORE_CONSTANTS) == 6
    assert len(letters) >= 2400
    assert len({letter.instruction.mnemonic for letter in letters}) >= 40
    assert {32, 64} <= {o.width for letter in letters for o in letter.instruction.operands if isinstance(o, Register)}
