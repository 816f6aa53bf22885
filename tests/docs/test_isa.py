"""The page on the modelled instructions is fresh and whole."""

import runpy
from pathlib import Path

import pytest

from ruledb.semantics.forms import FORMS

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def page():
    """The page as its generator prints it now."""
    return runpy.run_path(str(DOCS / "render_isa.py"))["page"]()


def test_the_page_is_fresh(page):
    """`docs/isa.md` is what its generator prints."""
    assert page == (DOCS / "isa.md").read_text(encoding="utf-8")


def test_every_mnemonic_has_a_line(page):
    """Each mnemonic of the table stands in the first column, and nothing else does."""
    rows = [line.split("|")[1].split() for line in page.splitlines() if line.startswith("| ")][2:]
    assert {mnemonic for row in rows for mnemonic in row} == set(FORMS)


@pytest.mark.parametrize(
    "line",
    [
        "| adc sbb | rw r or m, r r or m or imm | 8, 16, 32, 64 | CF | CF PF AF ZF SF OF | - | - | - | x86-64 |",
        "| shl shr sar | rw r or m, (r 1) | 8, 16, 32, 64 | - | CF PF ZF SF OF | - | AF | - | x86-64 |",
        "| bt | r r, r r or imm8 | 16, 32, 64 | - | CF | - | PF AF SF OF | - | x86-64 |",
    ],
)
def test_lines_say_what_the_manual_says(page, line):
    """Flags read, written and undefined stand as in the manual's chapters on these instructions."""
    assert line in page
