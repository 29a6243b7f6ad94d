"""Files that appear when they are whole: an interrupted program or a full disk leaves the old file, or none."""
import contextlib
import os


@contextlib.contextmanager
def whole_file(path):
    """A binary file that takes the place of `path` at the end of the block, or is removed after an error. An error of
    writing ends the program with a message."""
    part = path.with_name(f"{path.name}.part")
    try:
        with open(part, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)
        raise SystemExit(f"error: {path}: cannot be written ({error.strerror}); free some space, or name another folder") from None
    except BaseException:
        part.unlink(missing_ok=True)
        raise
