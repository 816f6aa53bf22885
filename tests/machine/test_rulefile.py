"""The rule file: a round trip, one text for one set, and refusals."""

import hashlib
import json
from dataclasses import replace
from itertools import permutations

import pytest
from asm import ADD_TO_INC, LEA_TO_ADD, RULES

from ruledb.machine.rulefile import RuleFileError, read_rule_file, rule_file_text, rule_from_json, rule_to_json

FULL = replace(
    LEA_TO_ADD,
    march="x86-64-v3",
    policy="stack",
    assumes=("stack(rbp)",),
    guards=("pow2(c0)",),
    facts=("r0 < 5",),
    positions=(0, 2),
    branch="ne",
)


def summed(head, body):
    """A file of three header lines and *body*, with the right sum."""
    above = "".join(line + "\n" for line in head)
    digest = hashlib.sha256(f"{above}\n{body}".encode()).hexdigest()
    return f"{above}sha256 {digest}\n\n{body}"


def resummed(text, change):
    """The file *text* with *change* made to its lines of JSON, and the sum made right."""
    head, _, body = text.partition("\n\n")
    lines = []
    for line in body.splitlines():
        data = json.loads(line)
        lines.append(json.dumps(change(data)) + "\n")
    return summed(head.splitlines()[:3], "".join(lines))


def counted(text, n):
    """The file *text* with a header that says *n* rules, and the sum made right."""
    head, _, body = text.partition("\n\n")
    return summed([*head.splitlines()[:2], f"rules {n}"], body)


@pytest.fixture
def file(tmp_path):
    """Writes a text and returns where."""

    def written(content):
        path = tmp_path / "some.rules"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return written


def test_rules_come_back(file):
    """Every field of every rule is read as it was written."""
    rules = (*RULES, FULL)
    content = read_rule_file(file(rule_file_text(rules, "meaning")))
    assert content.semantics == "meaning"
    assert content.rules == tuple(sorted(rules, key=lambda r: r.digest))
    assert [r.uses for r in content.rules] == [r.uses for r in sorted(rules, key=lambda r: r.digest)]


def test_an_empty_file_is_a_file(file):
    """No rules are a set of rules, too."""
    assert read_rule_file(file(rule_file_text((), "meaning"))).rules == ()


def test_the_same_rules_make_the_same_bytes():
    """The order in which rules come does not show."""
    assert len({rule_file_text(order, "meaning") for order in permutations(RULES)}) == 1


TEXT = rule_file_text(RULES, "meaning")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"\x7fELF\xff\xfe", "is not text"),
        ("", "not a rule file"),
        ("some words\n\nmore", "not a rule file"),
        (TEXT.replace("semantics", "semantic"), "not a rule file"),
        (TEXT.replace("ruledb-rules 1", "ruledb-rules 2"), "rule format 2, expected 1"),
        (TEXT[:-1], "SHA-256"),
        (TEXT[: len(TEXT) // 2], "SHA-256"),
        (TEXT.replace("inc r0d", "dec r0d"), "SHA-256"),
        (TEXT.replace("semantics meaning", "semantics other"), "SHA-256"),
        (TEXT.replace("rules 4", "rules 5"), "SHA-256"),
        (counted(TEXT, 5), "4 rules, but the header says 5"),
        (counted(TEXT, 3), "4 rules, but the header says 3"),
        (resummed(TEXT, lambda d: d | {"colour": "blue"}), "unknown or missing field colour"),
        (resummed(TEXT, lambda d: {k: v for k, v in d.items() if k != "preserves"}), "unknown or missing field preserves"),
        (resummed(TEXT, lambda d: d | {"replacement": "ud2"}), "its text has digest"),
        (resummed(TEXT, lambda d: d | {"preserves": "rax foo"}), "'foo' is not a register or flag"),
        (resummed(TEXT, lambda d: d | {"size": 5}), "some.rules"),
        (resummed(TEXT, lambda d: d | {"proofs": [["functional"]]}), "some.rules"),
        (resummed(TEXT, lambda d: d | {"pattern": 5}), "some.rules"),
        (resummed(TEXT, lambda d: d | {"preserves": None}), "some.rules"),
        (resummed(TEXT, lambda d: [d]), "some.rules"),
        (resummed(TEXT, lambda _: 5), "some.rules"),
    ],
)  # fmt: skip
def test_what_is_not_whole_is_refused(file, content, says):
    """One line says which file, what is wrong and what to do."""
    with pytest.raises(RuleFileError) as refused:
        read_rule_file(file(content))
    message = str(refused.value)
    assert says in message
    assert "some.rules" in message
    assert "export" in message
    assert "\n" not in message


@pytest.mark.parametrize("line", ["not json", "{", '{"digest": '])
def test_lines_that_are_no_json_are_refused(file, line):
    """A body with a right sum and wrong lines is refused, too."""
    body = line + "\n"
    head = TEXT.partition("\n\n")[0].splitlines()
    with pytest.raises(RuleFileError, match=r"some\.rules"):
        read_rule_file(file(summed(head[:3], body)))


def test_a_file_that_is_not_there_is_refused(tmp_path):
    """A missing file is refused with the system's reason, a folder as no regular file."""
    for path, reason in ((tmp_path / "none", "cannot read the rule file"), (tmp_path, "not a regular file")):
        with pytest.raises(RuleFileError, match=reason):
            read_rule_file(path)


def test_a_rule_under_another_digest_is_refused():
    """The digest in the data must be the rule's."""
    data = json.loads(json.dumps(rule_to_json(ADD_TO_INC)))
    assert rule_from_json(data) == ADD_TO_INC
    with pytest.raises(ValueError, match="its text has digest"):
        rule_from_json(data | {"digest": "0" * 32})
