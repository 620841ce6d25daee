"""The toolkit's errors and remedies; the scorers' are in `evaluation_script/files/problems.py`."""


class UsageError(Exception):
    """Raised for wrong usage of a command or a function of the toolkit."""


class OptionError(UsageError):
    """Raised for an option that would be ignored; the text begins with the option's name."""


class ArgumentTypeError(UsageError, TypeError):
    """Raised for an argument of an unsupported type."""


class ArgumentValueError(UsageError, ValueError):
    """Raised for an argument of the right type with unusable content."""


class UnknownMetricError(UsageError, KeyError):
    """Raised for a metric that scores lack."""

    def __str__(self) -> str:
        """Return the sentence; Python shows a KeyError in quotes."""
        return str(self.args[0])
