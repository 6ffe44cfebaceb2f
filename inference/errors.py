"""Errors whose text is shown to the person in front of the page."""


class UserError(Exception):
    """Something a visitor or whoever starts the app can mend.

    The message is one or two French sentences: what happened, then what to do. It is plain text, to be escaped where it is
    shown. Anything else that is raised is a bug.
    """


class InvalidParameter(UserError, ValueError):
    """A setting out of its range. `field` is the name of the offending field of `SamplingParams` or `StopRules`."""

    def __init__(self, field: str, message: str):
        super().__init__(message)
        self.field = field
