"""The benchmark of the rewriter."""

import pytest

from ruledb.bench_rewrite import measure_rewriting
from ruledb.machine.elf import ElfError
from ruledb.machine.rulefile import rule_file_text


def test_measures_code_per_second(corpus, tmp_path, monkeypatch, repository_on_path):
    """The figures belong together, and the file stays as it is."""
    monkeypatch.setenv("PYTHONPATH", repository_on_path["PYTHONPATH"])
    (tmp_path / "none.rules").write_text(rule_file_text((), "x"))
    path = corpus / "vm-O0"
    before = path.read_bytes()
    found = measure_rewriting(path, tmp_path / "none.rules")
    assert path.read_bytes() == before
    assert found["text_mb_per_cpu_second"] == pytest.approx(found["text_bytes"] / 1e6 / found["cpu_seconds"], rel=0.2)
    assert {"read", "liveness", "match"} <= found["seconds"].keys()
    with pytest.raises(ElfError, match="is not an ELF file"):
        measure_rewriting(tmp_path / "none.rules", tmp_path / "none.rules")
