"""Files that are whole or not there: write beside the place, then rename."""

from pathlib import Path
from tempfile import NamedTemporaryFile

__all__ = ["write_whole"]


def write_whole(path: Path, content: bytes) -> None:
    """
    Write *content* to *path* so that nobody ever reads half of it; its folder is created as needed.

    Raises:
        OSError: The folder or the file cannot be written; nothing is left behind.

    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
        partial = Path(file.name)
        try:
            file.write(content)
            file.flush()
            partial.chmod(0o644)
            partial.replace(path)
        except BaseException:
            partial.unlink(missing_ok=True)
            raise
