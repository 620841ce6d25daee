"""The toolkit's own errors, and their remedies; those of the scorers are in `evaluation_script/files/problems.py`."""


class UsageError(Exception):
    """Raised when a command or a function of the toolkit is called in a way that makes no sense."""


class OptionError(UsageError):
    """Raised for an option that would be ignored; the text begins with the option's name."""


def install_line(extra: str) -> str:
    """The command that installs what an extra needs, by the names of those packages.

    The project's own name with the extra in brackets is none that a package index knows.
    """
    import re  # most commands install nothing
    import shlex
    from importlib.metadata import PackageNotFoundError, requires

    try:
        lines = requires("segjudge") or []
    except PackageNotFoundError:
        lines = []
    of_extra = [line.partition(";")[0].strip() for line in lines if re.search(rf"""extra == ["']{extra}["']""", line)]
    if not of_extra:
        return f"pip install '.[{extra}]' in the checkout"
    return f"pip install {shlex.join(of_extra)}"
