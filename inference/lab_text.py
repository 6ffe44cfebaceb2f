"""The prose of a lab, in `assets/labs/`: Markdown cut into named parts, with {blanks} for what is measured."""

import re
from dataclasses import dataclass
from pathlib import Path

from inference.formatting import french

LABS = Path(__file__).parents[1] / "assets" / "labs"


@dataclass(frozen=True)
class LabText:
    """title  the page's. The parts are those under each `## name` of the file."""

    title: str
    parts: dict[str, str]

    def part(self, heading: str, /, **blanks: object) -> str:
        """A part, its blanks filled, with French spaces. Raises KeyError for an unknown part or a blank left empty."""
        return french(self.parts[heading].format(**blanks))

    @property
    def asks(self) -> str:
        """The question alone: the last sentence of `## question`."""
        return re.split(r"(?<=[.?]) ", self.part("question"))[-1]

    def choices(self) -> tuple[str, ...]:
        """The answers one may bet on: the list under `## réponses`."""
        return tuple(french(line.removeprefix("- ")) for line in self.parts["réponses"].splitlines() if line.startswith("- "))


def read_lab(name: str) -> LabText:
    title, *parts = (LABS / f"{name}.md").read_text(encoding="utf-8").split("\n## ")
    named = (part.split("\n", 1) for part in parts)
    return LabText(french(title.removeprefix("# ").strip()), {heading.strip(): body.strip() for heading, body in named})
