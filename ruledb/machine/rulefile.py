"""
The rule file: a text header and one JSON object a line, sorted by digest.

    ruledb-rules 1
    semantics <digest of the meaning that the proofs used>
    rules <count>
    sha256 <of the lines above and of the body>

    {"digest": "…", "pattern": "…", …}

A reader refuses another format version, an unknown or missing field, and a header or body that does not match its sum.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ruledb.machine.instruction import parse_sequence, sequence_text
from ruledb.machine.registers import mask_text, parse_mask
from ruledb.machine.rule import Proof, Rule

__all__ = ["FORMAT", "RuleFile", "RuleFileError", "read_rule_file", "rule_file_text", "rule_from_json", "rule_to_json"]

FORMAT = 1
_HEADER = ("ruledb-rules", "semantics", "rules", "sha256")


class RuleFileError(ValueError):
    """A file is not a whole rule file of this format; the message names the file, what is wrong and what to do."""


@dataclass(frozen=True, slots=True)
class RuleFile:
    """The rules of one file, and the digest of the semantics under which they were proved."""

    semantics: str
    rules: tuple[Rule, ...]


_LISTS = ("size", "time", "assumes", "guards", "facts", "positions")
_PLAIN = ("march", "policy", "branch", "witness", "uses")


def rule_to_json(rule: Rule) -> dict[str, object]:
    """*rule* as plain JSON data with named fields."""
    return {
        "digest": rule.digest,
        "pattern": sequence_text(rule.pattern),
        "replacement": sequence_text(rule.replacement),
        "preserves": mask_text(rule.preserves),
        **{name: list(getattr(rule, name)) for name in _LISTS},
        **{name: getattr(rule, name) for name in _PLAIN},
        "proofs": [[p.encoding, p.solver, p.version, p.limit_ms, p.query_digest] for p in rule.proofs],
    }


_FIELDS = {"digest", "pattern", "replacement", "preserves", *_LISTS, *_PLAIN, "proofs"}


def rule_from_json(data: dict[str, Any]) -> Rule:
    """
    The rule that `rule_to_json` wrote.

    Raises:
        ValueError: A field is missing, unknown or malformed, or the digest is not the rule's.

    """
    if wrong := _FIELDS.symmetric_difference(data):
        raise ValueError(f"unknown or missing field {', '.join(sorted(wrong))}")
    fields = {name: value for name, value in data.items() if name != "digest"}
    fields |= {name: tuple(fields[name]) for name in _LISTS}
    fields["pattern"] = parse_sequence(fields["pattern"])
    fields["replacement"] = parse_sequence(fields["replacement"])
    fields["preserves"] = parse_mask(fields["preserves"])
    fields["proofs"] = tuple(Proof(*p) for p in fields["proofs"])
    rule = Rule(**fields)
    if rule.digest != data["digest"]:
        raise ValueError(f"rule {data['digest']}: its text has digest {rule.digest}")
    return rule


def rule_file_text(rules: Iterable[Rule], semantics: str) -> str:
    """The text of a rule file; the same rules give the same text, whatever their order."""
    lines = [json.dumps(rule_to_json(rule), sort_keys=True) + "\n" for rule in sorted(rules, key=lambda r: r.digest)]
    body = "".join(lines)
    head = dict(zip(_HEADER, (str(FORMAT), semantics, str(len(lines))), strict=False))
    return _header_text(head | {"sha256": _sum(head, body)}) + "\n" + body


def _header_text(header: Mapping[str, str]) -> str:
    return "".join(f"{name} {value}\n" for name, value in header.items())


def _sum(header: Mapping[str, str], body: str) -> str:
    """The SHA-256 of a file but for its own line: what it says of its rules is as protected as they are."""
    above = {name: value for name, value in header.items() if name != "sha256"}
    return hashlib.sha256(f"{_header_text(above)}\n{body}".encode()).hexdigest()


def read_rule_file(path: Path) -> RuleFile:
    """
    The rules of the file at *path*.

    Raises:
        RuleFileError: The file cannot be read, is of another format, cut short, or was changed.

    """
    if path.exists() and not path.is_file():
        raise RuleFileError(f"{path}: not a regular file; expected a rule file written by 'ruledb export'")
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        reason = problem.strerror if isinstance(problem, OSError) else "it is not text"
        raise RuleFileError(f"{path}: cannot read the rule file ({reason}); expected one written by 'ruledb export'") from None
    head, gap, body = text.partition("\n\n")
    header = dict(line.partition(" ")[::2] for line in head.splitlines())
    if tuple(header) != _HEADER or not gap:
        raise RuleFileError(f"{path}: not a rule file; expected one written by 'ruledb export'")
    if header["ruledb-rules"] != str(FORMAT):
        raise RuleFileError(f"{path}: rule format {header['ruledb-rules']}, expected {FORMAT}; export the rules again with this version")
    if _sum(header, body) != header["sha256"]:
        raise RuleFileError(f"{path}: the file does not match its SHA-256 (cut short or changed); export them again")
    try:
        rules = tuple(rule_from_json(json.loads(line)) for line in body.splitlines())
    except (ValueError, TypeError, RecursionError, AttributeError) as problem:
        raise RuleFileError(f"{path}: {problem}; export the rules again with this version") from None
    if str(len(rules)) != header["rules"]:
        raise RuleFileError(f"{path}: {len(rules)} rules, but the header says {header['rules']}; export them again")
    return RuleFile(header["semantics"], rules)
