"""One exception for each status of the library.

Each is an :class:`Error` and also what Python calls such a problem, so that both
``except n2ce.Error`` and ``except ValueError`` do what they say.
"""
import re


class Error(Exception):
    """A call of the library failed; the text is the library's sentence."""
    status = None


class InvalidArgument(Error, ValueError):
    status = -1


class OutOfMemory(Error, MemoryError):
    status = -2


class NotFinite(Error, ValueError):
    status = -3


class OutOfRange(Error, OverflowError):
    status = -4


class FileProblem(Error, OSError):
    status = -5


class FileExists(Error, FileExistsError):
    status = -6


class Canceled(Error):
    status = -7


class BadData(Error, ValueError):
    status = -8


class DeviceProblem(Error, RuntimeError):
    status = -9


class Warning(UserWarning):
    """Something the library says that the user should know."""


# Options whose names are short on the command line, or reserved in Python.
_KEYWORDS = {"M": "magnitude", "lambda": "regularisation"}


def keyword_of(option):
    """What an option of the command line is called here: "time-limit" is "time_limit"."""
    return _KEYWORDS.get(option, option).replace("-", "_")


def spell(message):
    """A sentence of the library with its options spelled as keywords."""
    return re.sub(r"--([A-Za-z][a-z0-9-]*)", lambda match: keyword_of(match[1]), message)


_BY_STATUS = {kind.status: kind for kind in Error.__subclasses__()}


def error_of(status, message):
    """The exception for a status."""
    return _BY_STATUS.get(status, Error)(spell(message))
