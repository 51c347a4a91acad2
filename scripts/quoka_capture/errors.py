"""Faults that a user can do something about, each with its exit code."""


class CaptureError(Exception):
    """The message says what is wrong, why it matters and what to do."""

    exit_code = 1


class UsageError(CaptureError):
    """Options that cannot be followed."""

    exit_code = 2


class Refused(CaptureError):
    """A model, prompt or file that cannot become a version 1 capture."""

    exit_code = 3


class WriteError(CaptureError):
    """The file system did not take the data. HDF5 may crash when it is closed after that: end by os._exit."""

    exit_code = 74


class Interrupted(CaptureError):
    """A signal ended the capture; the same command starts it again."""

    exit_code = 75


def require(condition, kind, message):
    if not condition:
        raise kind(message)
