#!/usr/bin/env python3
"""Build the training corpus: every program by several compilers and at several optimisation levels, with a manifest."""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent
SOURCES = ROOT / "src"
BINARIES = ROOT / "bin"
EXPECTED = ROOT / "expected"
MANIFEST = ROOT / "manifest.json"

FLAGS = (
    "-std=gnu11",
    "-fno-ident",
    "-Wl,--build-id=none",
    "-Wl,-z,norelro",
    "-Wl,-z,noseparate-code",
)


@dataclass(frozen=True)
class Kind:
    """
    A way to build programs.

    *name* ends the names of its binaries. Of the sources, ascending, those with index *first*, *first* + *every*, … are built;
    not those in *without*, which the compiler does not know.
    """

    name: str
    compiler: str
    flags: tuple[str, ...]
    first: int = 0
    every: int = 1
    without: tuple[str, ...] = ()


KINDS = (
    Kind("O0", "gcc", ("-O0", *FLAGS)),
    Kind("O1", "gcc", ("-O1", *FLAGS)),
    Kind("O2", "gcc", ("-O2", *FLAGS)),
    Kind("Os", "gcc", ("-Os", *FLAGS), 0, 2),
    Kind("O3", "gcc", ("-O3", *FLAGS), 1, 3),
    Kind("clang", "clang", ("-O0", *FLAGS), 1, 2),
    # With -g, functions are symbols that have a size; they have no entries in a frame table.
    Kind(
        "tcc", "tcc", ("-g",), 0, 2,
        ("carry", "octets", "overflow", "rotate", "samples", "saturate", "sha256", "widths", "words", "wraps"),
    ),
)  # fmt: skip
STRIP_EVERY = 3
SIZE_LIMIT = 3_000_000
RUN_SECONDS = 10


@dataclass(frozen=True)
class Target:
    """One binary to build."""

    source: Path
    kind: Kind
    stripped: bool

    @property
    def name(self) -> str:
        """Return the file name of the binary."""
        return f"{self.source.stem}-{self.kind.name}"

    @property
    def flags(self) -> list[str]:
        """Return the compiler flags of the binary."""
        return [*self.kind.flags, *(["-s"] if self.stripped else [])]


def plan() -> list[Target]:
    """List the targets; every third one is stripped, but where nothing else tells what the functions are."""
    sources = sorted(SOURCES.glob("*.c"))
    chosen = [
        (source, kind)
        for index, source in enumerate(sources)
        for kind in KINDS
        if index % kind.every == kind.first and source.stem not in kind.without
    ]
    return [Target(source, kind, kind.compiler != "tcc" and index % STRIP_EVERY == 0) for index, (source, kind) in enumerate(chosen)]


def compiler_version(compiler: str) -> str:
    """Return the first line of the compiler's version message."""
    option = "-v" if compiler == "tcc" else "--version"
    answer = subprocess.run([compiler, option], check=True, capture_output=True, text=True)
    return answer.stdout.splitlines()[0]


def digest(path: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def compile_target(target: Target, folder: Path) -> None:
    """Compile one target into the folder; of what -g brings, the symbols' sizes stay."""
    output = folder / target.name
    subprocess.run([target.kind.compiler, *target.flags, "-o", output, target.source], check=True)
    if target.kind.compiler == "tcc":
        subprocess.run(["strip", "--strip-debug", output], check=True, stderr=subprocess.DEVNULL)
    output.chmod(0o755)


def compile_all(targets: list[Target], folder: Path) -> None:
    """Compile the targets into the folder, several at a time."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(lambda target: compile_target(target, folder), targets))


def run(binary: Path) -> str:
    """Return the standard output of a binary that must exit with 0."""
    answer = subprocess.run([binary], check=True, capture_output=True, text=True, timeout=RUN_SECONDS)
    return answer.stdout


def agreed_outputs(targets: list[Target], folder: Path) -> dict[str, str]:
    """Return the output of each program, refusing one whose builds disagree."""
    outputs: dict[str, str] = {}
    for target in targets:
        output = run(folder / target.name)
        if outputs.setdefault(target.source.stem, output) != output:
            raise SystemExit(f"{target.name}: prints something else than another level")
    return outputs


def entry(target: Target, folder: Path, version: str) -> dict[str, str | int | bool | list[str]]:
    """Describe one binary for the manifest."""
    binary = folder / target.name
    return {
        "path": f"{BINARIES.name}/{target.name}",
        "source": f"{SOURCES.name}/{target.source.name}",
        "source_sha256": digest(target.source),
        "compiler": version,
        "flags": target.flags,
        "stripped": target.stripped,
        "sha256": digest(binary),
        "size": binary.stat().st_size,
    }


def replace_folder(folder: Path, files: dict[str, bytes], mode: int) -> None:
    """Make the folder hold exactly the given files."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name, content in files.items():
        path = folder / name
        path.write_bytes(content)
        path.chmod(mode)


def build() -> None:
    """Build the corpus and write the binaries, the expected outputs and the manifest."""
    targets = plan()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        compile_all(targets, folder)
        outputs = agreed_outputs(targets, folder)
        binaries = {target.name: (folder / target.name).read_bytes() for target in targets}
    total = sum(map(len, binaries.values()))
    if total > SIZE_LIMIT:
        raise SystemExit(f"{total} bytes of binaries, more than {SIZE_LIMIT}")
    replace_folder(BINARIES, binaries, 0o755)
    expected = {f"{program}.txt": text.encode() for program, text in outputs.items()}
    replace_folder(EXPECTED, expected, 0o644)
    versions = {kind.compiler: compiler_version(kind.compiler) for kind in KINDS}
    entries = [entry(target, BINARIES, versions[target.kind.compiler]) for target in targets]
    entries.sort(key=lambda item: str(item["path"]))
    MANIFEST.write_text(json.dumps(entries, indent=1) + "\n")
    print(f"{len(outputs)} programs, {len(targets)} binaries, {total} bytes")


def check() -> None:
    """Rebuild aside and report the binaries that differ from those of the manifest."""
    recorded = {item["path"]: item["sha256"] for item in json.loads(MANIFEST.read_text())}
    targets = plan()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        compile_all(targets, folder)
        rebuilt = {f"{BINARIES.name}/{path.name}": digest(path) for path in folder.iterdir()}
    differing = sorted(path for path in recorded | rebuilt if recorded.get(path) != rebuilt.get(path))
    for path in differing:
        print(f"differs: {path}")
    print(f"{len(differing)} of {len(rebuilt)} binaries differ")


def main(arguments: list[str]) -> None:
    """Parse the command line and build or check."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="rebuild aside and report which binaries differ")
    options = parser.parse_args(arguments)
    (check if options.check else build)()


if __name__ == "__main__":
    main(sys.argv[1:])
