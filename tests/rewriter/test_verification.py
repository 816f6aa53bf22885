"""Translation validation: what a rewriter did is proved again, and what is not proved is not done."""

import json
from dataclasses import replace

import pytest
from sample_rules import RULES, forwarding, rule

from rewriter import verification
from rewriter.driver import rewrite
from rewriter.verification import VerificationError, verify
from ruledb.machine.rulefile import rule_file_text
from ruledb.site_proofs import prove_sites


@pytest.fixture(autouse=True)
def _own_folders(monkeypatch, tmp_path):
    """Proofs of other runs are not known here."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_sites_are_proved_and_known_the_next_time(peephole, program, tmp_path):
    """All sites of a program are proved before it is written; the report tells how many, and a second run asks nothing."""
    for n_known in (0, None):
        code, out, err = peephole(program, "-o", tmp_path / "out", "--verify", "--report", tmp_path / "report.json")
        assert (code, err) == (0, "")
        report = json.loads((tmp_path / "report.json").read_text())
        found = report["verified"]
        assert found["sites"] > found["claims"] == found["proved"] > 1
        assert (found["refuted"], found["unknown"], found["undecided"]) == (0, 0, [])
        assert found["known"] == (found["claims"] if n_known is None else n_known)
        assert f"verified   {found['sites']} sites by {found['claims']} proofs" in out
        assert len(report["rewrites"]) >= found["sites"]


def test_without_rewrites_there_is_nothing_to_prove(peephole, program, tmp_path):
    """A program that is settled is verified at once."""
    assert peephole(program, "-o", tmp_path / "out", "-q")[0] == 0
    code, out, _ = peephole(tmp_path / "out", "--dry-run", "--verify")
    assert code == 0
    assert "verified   0 sites" in out


def test_wrong_rules_are_refused(peephole, program, tmp_path):
    """A rule that is wrong where it was applied is found out, and nothing is written."""
    wrong = tmp_path / "wrong.rules"
    wrong.write_text(rule_file_text([rule("mov r0d, 0", "not r0d", "r0")], ""))
    before = sorted(tmp_path.iterdir())
    code, out, err = peephole(program, "-o", tmp_path / "out", "--rules", wrong, "--verify")
    assert (code, out) == (2, "")
    assert "refuted" in err
    assert err.count("\n") == 1
    assert [p.name for p in sorted(tmp_path.iterdir()) if p.name != "cache"] == [p.name for p in before]


@pytest.mark.parametrize("where", ["site", "elsewhere"])
def test_other_bytes_are_found_out(program, where):
    """A byte that is not what the rewriter says, at a site or elsewhere, is found whatever the rules are."""
    result = rewrite(program.read_bytes(), RULES)
    site = result.rewrites[0]
    offset = next(i for i, (a, b) in enumerate(zip(program.read_bytes(), result.data, strict=True)) if a != b) if where == "site" else 9
    data = bytearray(result.data)
    data[offset] ^= 0x55
    with pytest.raises(VerificationError, match=f"{site.address:#x}" if where == "site" else "1 bytes differ"):
        verify(program.read_bytes(), replace(result, data=bytes(data)), "program")


def test_what_stays_undecided_is_left_as_it_was(peephole, program, tmp_path, monkeypatch):
    """Sites that are neither proved nor refuted are skipped, and the rest is proved again."""
    report = tmp_path / "report.json"
    assert peephole(program, "--dry-run", "--report", report)[0] == 0
    first = json.loads(report.read_text())["rewrites"][0]
    asked = []

    def careful(data, result, name):
        asked.append({r.address for r in result.rewrites})
        is_done = first["address"] not in asked[-1]
        return {"sites": 1, "claims": 1, "known": 0, "undecided": [] if is_done else [f"{first['address']:#x}-{first['end']:#x}"]}

    monkeypatch.setattr(verification, "verify", careful)
    code, out, _ = peephole(program, "-o", tmp_path / "out", "--verify")
    assert code == 0
    assert len(asked) == 2
    assert "skip 1" in out
    assert len(asked[1]) < len(asked[0])


def test_no_prover_is_refused(monkeypatch, program):
    """Where the child process cannot run, that is told in a line."""
    monkeypatch.setattr(verification.sys, "executable", "/bin/false")
    with pytest.raises(VerificationError, match="cannot be verified"):
        verify(program.read_bytes(), rewrite(program.read_bytes(), RULES), "program")


def test_the_command_of_the_prover(ruledb_report, tmp_path):
    """`ruledb verify --sites` proves what a report lists, with either solver."""
    for solver in ("bitwuzla", "z3"):
        answer = prove_sites(ruledb_report, solver, 1, tmp_path / "proofs")
        assert answer["proved"] == answer["claims"] > 0
        assert answer["failures"] == []


@pytest.fixture
def ruledb_report(peephole, program, tmp_path):
    """The report on a rewritten program."""
    report = tmp_path / "report.json"
    assert peephole(program, "-o", tmp_path / "out", "--report", report)[0] == 0
    return report


def test_verification_needs_no_option_of_the_working_directory(peephole, program, tmp_path, monkeypatch):
    """A package of the same name in the working directory is not run."""
    (tmp_path / "ruledb").mkdir()
    (tmp_path / "ruledb" / "__init__.py").write_text("raise SystemExit(0)")
    monkeypatch.chdir(tmp_path)
    assert peephole(program, "--dry-run", "--verify")[0] == 0


CLOSED = """
    .intel_syntax noprefix
    .globl main
    .type main, @function
main:
    .cfi_startproc
    push rbp
    mov rbp, rsp
    mov dword ptr [rbp-4], edi
    mov edi, dword ptr [rbp-4]
    mov ecx, edi
    cmp ecx, 3
    setl al
    movzx eax, al
    test eax, eax
    jne 1f
    mov ecx, 7
1:  mov eax, ecx
    pop rbp
    ret
    .cfi_endproc
    .size main, .-main
    .section .note.GNU-stack,"",@progbits
"""
PATTERN = "cmp r0d, c0; setl r1b; movzx r1d, r1b; test r1d, r1d; jne L"
CHAIN, WRONG = (rule(PATTERN, f"cmp r0d, c0; j{condition} L", "r0", branch=condition) for condition in ("l", "le"))


@pytest.mark.parametrize("chain", [CHAIN, WRONG], ids=["right", "wrong"])
def test_jumps_and_slots_are_proved(build, chain):
    """A closing jump whose condition changes, and a load from a slot, are proved under what their rules assume; a wrong one is found."""
    path = build(CLOSED, suffix=".s")
    result = rewrite(path.read_bytes(), [chain, forwarding("dword", "r1d")])
    assert {r.policy for r in result.rewrites} == {"none", "stack"}
    if chain is CHAIN:
        assert verify(path.read_bytes(), result, "program")["proved"] == 2
    else:
        with pytest.raises(VerificationError, match="refuted"):
            verify(path.read_bytes(), result, "program")
