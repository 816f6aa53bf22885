"""Where things are kept for a user: the data folder, and the rule file that the last training exported."""

from pathlib import Path

from platformdirs import user_data_path

from ruledb.machine.files import write_whole

__all__ = ["data_folder", "last_rules", "remember_rules"]


def data_folder() -> Path:
    """The user's folder for databases and rule files."""
    return Path(user_data_path("ruledb"))


def _pointer() -> Path:
    return data_folder() / "last-rules"


def remember_rules(path: Path) -> None:
    """Note that the last training exported *path*."""
    write_whole(_pointer(), f"{path.resolve()}\n".encode())


def last_rules() -> Path | None:
    """The rule file that the last training exported; None where there was no training, or the file is gone."""
    try:
        path = Path(_pointer().read_text(encoding="utf-8").strip())
    except (OSError, UnicodeDecodeError):
        return None
    return path if path.is_file() else None
