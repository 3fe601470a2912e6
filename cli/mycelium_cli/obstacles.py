"""What stands in the way of using files: the operating system's refusals as errors of the tree."""

from __future__ import annotations

import errno
import os
import shlex
import stat
from pathlib import Path

from mycelium_sdk.errors import BackendError, MyceliumError

__all__ = ["access_error", "is_there", "obstacle", "unusable_folder"]

_OUTSIDE = frozenset(
    {
        errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.ENOTDIR,
        errno.EISDIR, errno.ELOOP, errno.ENAMETOOLONG, errno.EMFILE, errno.ENFILE,
    }
)  # fmt: skip
"""What a machine refuses whoever asks. A file that is not there, or is there already, was not looked for well
enough: that is a bug."""


_EFFECTIVE = os.access in os.supports_effective_ids


def obstacle(error: BaseException, kind: type[MyceliumError] = BackendError) -> MyceliumError | None:
    """The error of the tree for what the operating system refused about a file; None for anything else."""
    if not isinstance(error, OSError) or error.errno not in _OUTSIDE:
        return None
    name = error.filename
    if not isinstance(name, (str, bytes)):
        return None
    from mycelium_sdk.files import file_error

    path = Path(os.fsdecode(name))
    found = file_error(error, path, "use", kind)
    if error.errno == errno.EACCES:
        return kind(found.message, hint=_opening(path) or found.hint)
    return found


def is_there(path: Path) -> bool:
    """Whether there is something at the path, also where it is a link to nothing. Raises `OSError` where that
    cannot be told, unlike `Path.exists` of some releases of Python."""
    try:
        path.lstat()
    except FileNotFoundError:
        return False
    return True


def unusable_folder(path: Path) -> MyceliumError | None:
    """Why a folder cannot be used, or made where it is missing; None if it can."""
    nearest = path
    while not _is_there_or_below_a_file(nearest):
        nearest = nearest.parent
    if not nearest.is_dir():
        said = f"{nearest} is not a folder"
        return BackendError(
            said if nearest == path else f"{path} cannot be made: {said}",
            hint="move it away, or choose another folder with --home or MYCELIUM_HOME",
        )
    return access_error(nearest, os.X_OK | (os.R_OK if nearest == path else os.W_OK))


def access_error(path: Path, rights: int | None = None) -> MyceliumError | None:
    """Why this user has not those `rights` to a file or folder; None if there are all.

    By default those that writing a file takes, or making and finding files in a folder.
    """
    folder = path.is_dir()
    if rights is None:
        rights = os.R_OK | os.W_OK | (os.X_OK if folder else 0)
    if os.access(path, rights, effective_ids=_EFFECTIVE):
        return None
    if rights & os.W_OK and os.statvfs(path).f_flag & os.ST_RDONLY:
        return obstacle(OSError(errno.EROFS, os.strerror(errno.EROFS), str(path)))
    return BackendError(
        f"{path} cannot be {'used' if folder else 'written'}: permission denied",
        hint=_opening(path) or "check who owns the file and its folders",
    )


def _is_there_or_below_a_file(path: Path) -> bool:
    try:
        return is_there(path)
    except NotADirectoryError:
        return False


def _opening(path: Path) -> str | None:
    """The command that gives this user back what bars the way: the first of the path's folders that cannot be
    searched, else the file. None where it is another's."""
    for place in (*reversed(path.absolute().parents), path.absolute()):
        try:
            status = place.lstat()
        except OSError:
            return None
        folder = stat.S_ISDIR(status.st_mode)
        wanted = 0o700 if folder else 0o600
        searched = folder and os.access(place, os.X_OK, effective_ids=_EFFECTIVE)
        if searched and place != path.absolute():
            continue
        if status.st_uid != os.geteuid() or status.st_mode & wanted == wanted:
            return None
        return f"run `chmod {wanted:o} {shlex.quote(str(place))}`"
    return None
