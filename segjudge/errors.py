"""The toolkit's own errors; those of the scorers are in `evaluation_script/errors.py`."""


class UsageError(Exception):
    """Raised when a command or a function of the toolkit is called in a way that makes no sense."""


class OptionError(UsageError):
    """Raised for an option that would be ignored; the text begins with the option's name."""
