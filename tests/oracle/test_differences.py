"""What the emulator does otherwise than the processor is recorded, and nothing else is."""

import os
from pathlib import Path

import pytest
from differences import page
from engines import native_reason

PAGE = Path(__file__).parents[2] / "docs" / "emulator.md"


@pytest.mark.skipif(bool(native_reason()), reason=native_reason() or "runs here")
def test_the_page_on_differences_is_fresh():
    """`docs/emulator.md` holds the differences that the comparison finds on this processor."""
    found = page()
    if os.environ.get("BLESS") == "1":
        PAGE.write_text(found, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == found
