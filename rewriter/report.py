"""What a run reports: one JSON object, a short table, and each rewrite in words."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from rewriter.driver import Result

__all__ = ["explanation", "report_json", "table"]


def report_json(result: Result, source: str, output: str | None, verified: Mapping[str, Any] | None = None) -> str:
    """The report on rewriting the file *source* to *output* (None: nothing was written), and what was *verified* of it."""
    data = {
        "input": source,
        "output": output,
        "text_bytes": result.text_bytes,
        "instructions": result.instructions,
        "functions": {"seen": result.functions, "opaque": dict(result.opaque)},
        "rewrites": [
            {
                "address": rewrite.address,
                "end": rewrite.end,
                "rule": rewrite.rule,
                "before": rewrite.before,
                "after": rewrite.after,
                "live_out": rewrite.live_out,
                "policy": rewrite.policy,
                "assumes": list(rewrite.assumes),
                "march": rewrite.march,
                "bytes_saved": rewrite.bytes_saved,
                "cycles_saved": rewrite.cycles_saved,
            }
            for rewrite in result.rewrites
        ],
        "bytes_saved": sum(rewrite.bytes_saved for rewrite in result.rewrites),
        "instructions_removed": sum(rewrite.instructions_removed for rewrite in result.rewrites),
        "refused": dict(result.refused),
        "refused_rules": {digest: dict(reasons) for digest, reasons in result.refused_rules.items()},
        "passes": result.passes,
        "seconds": {stage: round(seconds, 6) for stage, seconds in result.seconds.items()},
    }
    return json.dumps(data if verified is None else data | {"verified": dict(verified)}, indent=1) + "\n"


_WIDTH = 80


def table(result: Result, output: str, verified: Mapping[str, Any] | None = None) -> str:
    """A summary in lines of at most 80 columns; *output* says where the result is, *verified* what was proved of it."""
    n_bytes = sum(r.bytes_saved for r in result.rewrites)
    n_removed = sum(r.instructions_removed for r in result.rewrites)
    rows = [
        ("output", output),
        ("code", f"{result.text_bytes:,} bytes, {result.instructions:,} instructions"),
        ("functions", f"{result.functions:,}, of which {sum(result.opaque.values()):,} left alone{_counts(result.opaque)}"),
        ("rewrites", f"{len(result.rewrites):,} in {result.passes} passes"),
        ("saved", f"{n_bytes:,} bytes ({_share(n_bytes, result.text_bytes)}), {n_removed:,} instructions"),
        ("refused", f"{sum(result.refused.values()):,}{_counts(result.refused)}"),
        *([("verified", _proofs(verified))] if verified is not None else []),
        ("time", f"{sum(result.seconds.values()):.2f} s"),
    ]
    return "\n".join(line for name, text in rows for line in _wrapped(name, text))


def explanation(result: Result) -> Iterator[str]:
    """Each rewrite: its address, its rule, and both sides, one instruction a line."""
    for rewrite in result.rewrites:
        yield f"{rewrite.address:#x}: rule {rewrite.rule}, {rewrite.bytes_saved} bytes saved"
        for sign, side in (("-", rewrite.before), ("+", rewrite.after)):
            yield from (f"  {sign} {line}" for line in side.split("; ") if line)


def _proofs(verified: Mapping[str, Any]) -> str:
    return f"{verified['sites']:,} sites by {verified['claims']:,} proofs, of which {verified['known']:,} were known"


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.2f} %" if whole else "-"


def _counts(counts: Mapping[str, int]) -> str:
    return f" ({', '.join(f'{reason} {n:,}' for reason, n in counts.items())})" if counts else ""


def _wrapped(name: str, text: str) -> Iterator[str]:
    """*text* behind *name*, broken at spaces, or within a word that is longer than a line."""
    room, lead = _WIDTH - 11, name
    while text:
        cut = len(text) if len(text) <= room else text.rfind(" ", 1, room + 1)
        cut = cut if cut > 0 else room
        yield f"{lead:<11}{text[:cut]}"
        text, lead = text[cut:].lstrip(), ""
