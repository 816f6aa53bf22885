"""Files that are whole or not there."""

import pytest

from ruledb.machine import files
from ruledb.machine.files import write_whole


def test_a_file_is_written_with_its_folder(tmp_path):
    """Folders are made as needed, nothing lies beside the file."""
    path = tmp_path / "a" / "b" / "file"
    write_whole(path, b"content")
    assert path.read_bytes() == b"content"
    assert [p.name for p in path.parent.iterdir()] == ["file"]
    assert path.stat().st_mode & 0o777 == 0o644


def test_a_file_is_replaced(tmp_path):
    """The new content takes the place of the old, at once."""
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with path.open("rb") as reader:
        write_whole(path, b"new")
        assert reader.read() == b"old"
    assert path.read_bytes() == b"new"


def test_a_failure_leaves_what_was_there(tmp_path, monkeypatch):
    """Where renaming fails the old file stays and no part of the new one does."""
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def refuse(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.Path, "replace", refuse)
    with pytest.raises(OSError, match="No space"):
        write_whole(path, b"new")
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_a_folder_that_cannot_be_made_is_an_error(tmp_path):
    """A file in the way of the folder is the caller's to report."""
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(OSError, match="file"):
        write_whole(tmp_path / "file" / "inner", b"x")
