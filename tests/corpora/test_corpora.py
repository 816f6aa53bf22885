"""Properties of the training corpus."""

from __future__ import annotations

import hashlib
import json
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

CORPORA = Path(__file__).resolve().parents[2] / "corpora"
MANIFEST: list[dict[str, Any]] = json.loads((CORPORA / "manifest.json").read_text())
FLAGS = {**{level: f"-{level}" for level in ("O0", "O1", "O2", "Os", "O3")}, "clang": "-O0", "tcc": "-g"}
SIZE_LIMIT = 3_000_000

native = pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() != "x86_64",
    reason="the corpus runs on Linux x86-64 only",
)


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def files(folder: str) -> set[str]:
    """Return the paths of the files in a folder of the corpus."""
    return {f"{folder}/{path.name}" for path in (CORPORA / folder).iterdir()}


def program(entry: dict[str, Any]) -> str:
    """Return the name of the program that an entry was built from."""
    return Path(entry["source"]).stem


def test_manifest_lists_exactly_the_binaries() -> None:
    """The manifest and the folder of binaries hold the same paths, sorted and unique."""
    paths = [entry["path"] for entry in MANIFEST]
    assert paths == sorted(files("bin"))


def test_manifest_lists_exactly_the_sources() -> None:
    """Every source is built, and every built source is present."""
    assert {entry["source"] for entry in MANIFEST} == files("src")


def test_every_program_has_an_expected_output() -> None:
    """The expected outputs are those of the programs, one each."""
    assert {f"expected/{program(entry)}.txt" for entry in MANIFEST} == files("expected")


def test_manifest_matches_the_files() -> None:
    """Each entry records the digests and the size of its files."""
    for entry in MANIFEST:
        binary = CORPORA / entry["path"]
        assert sha256(binary) == entry["sha256"], entry["path"]
        assert binary.stat().st_size == entry["size"], entry["path"]
        assert sha256(CORPORA / entry["source"]) == entry["source_sha256"], entry["path"]


def test_binaries_are_executable() -> None:
    """Each binary carries the executable mode."""
    assert all((CORPORA / entry["path"]).stat().st_mode & 0o111 == 0o111 for entry in MANIFEST)


def test_binaries_are_small() -> None:
    """All the binaries together stay within the size limit."""
    assert sum(entry["size"] for entry in MANIFEST) <= SIZE_LIMIT


def test_programs_are_many() -> None:
    """The corpus has at least forty programs."""
    assert len({program(entry) for entry in MANIFEST}) >= 40


def kind(entry: dict[str, Any]) -> str:
    """Return how a binary was built."""
    return Path(entry["path"]).name.rpartition("-")[2]


def test_every_program_is_built_in_several_ways() -> None:
    """Each program is built by gcc at three levels; each kind has its flags and at least twenty programs."""
    built: dict[str, set[str]] = {}
    for entry in MANIFEST:
        assert Path(entry["path"]).name == f"{program(entry)}-{kind(entry)}"
        assert FLAGS[kind(entry)] in entry["flags"]
        assert entry["compiler"].startswith({"tcc": "tcc", "clang": "Debian clang"}.get(kind(entry), "gcc"))
        built.setdefault(program(entry), set()).add(kind(entry))
    assert all(kinds >= {"O0", "O1", "O2"} for kinds in built.values())
    assert all(sum(name in kinds for kinds in built.values()) >= 20 for name in FLAGS)


def test_each_kind_is_stripped_in_part() -> None:
    """Each kind has stripped and unstripped binaries, but that whose functions only symbols tell; the flags say which."""
    kinds = {(kind(entry), entry["stripped"]) for entry in MANIFEST}
    assert kinds == {(name, stripped) for name in FLAGS for stripped in (False, True)} - {("tcc", True)}
    assert all(("-s" in entry["flags"]) == entry["stripped"] for entry in MANIFEST)


@native
@pytest.mark.parametrize("entry", MANIFEST, ids=lambda entry: Path(entry["path"]).name)
def test_binary_prints_the_expected_output(entry: dict[str, Any]) -> None:
    """A binary exits with 0 and prints what its program is expected to print."""
    answer = subprocess.run([CORPORA / entry["path"]], capture_output=True, timeout=10, check=False)
    assert answer.returncode == 0
    assert answer.stderr == b""
    assert answer.stdout == (CORPORA / "expected" / f"{program(entry)}.txt").read_bytes()
