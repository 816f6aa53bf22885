"""The digest of the meaning: proofs made under another one are stale."""

from functools import lru_cache
from pathlib import Path

from ruledb.machine.canonical import text_digest

__all__ = ["semantics_digest"]


@lru_cache(maxsize=1)
def semantics_digest() -> str:
    """Content hash of the sources that say what instructions mean."""
    sources = sorted(Path(__file__).parent.glob("*.py"))
    return text_digest("\0".join(p.read_text(encoding="utf-8") for p in sources))
