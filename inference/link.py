"""The address that reopens a state. What arrives in one is hostile: each value is checked, and a bad one costs only itself."""

from collections.abc import Mapping
from dataclasses import dataclass

from inference.errors import InvalidParameter
from inference.records import MAX_NEW_TOKENS, MAX_STOP_SEQUENCES, SamplingParams, StopRules
from inference.sentence import Choice

MAX_LINKED_CHARACTERS = 1_500
"""Longer prompts are left out of the address: browsers and chat programs cut long ones."""

DEFAULT_PARAMS = SamplingParams(temperature=1.0, top_p=0.9, seed=190)
"""What an address that names no setting means: the model's own temperature, a cut one can see, and a seed whose first u stands at a fork:
on the example the embedded model draws « ␣can », and « ␣lit » once the temperature goes down."""

_PARAM_KEYS = {
    "t": ("temperature", float),
    "k": ("top_k", int),
    "p": ("top_p", float),
    "minp": ("min_p", float),
    "rep": ("repetition_penalty", float),
    "ordre": ("order", str),
    "graine": ("seed", int),
}
_OFF = "non"
TOUR_STEPS = tuple(map(str, range(7)))
"""What « visite » may be; 0, closed, then the six steps of the walkthrough."""


@dataclass(frozen=True)
class LinkState:
    """What an address holds.

    prompt     None when the address names none.
    token_ids  generated tokens, with whether each was forced.
    tour       the step of the walkthrough to open on, 0 for none.
    is_projected  whether to open in projector mode.
    problems   French sentences, one for each value that was refused.
    """

    prompt: str | None
    token_ids: tuple[tuple[int, bool], ...]
    params: SamplingParams
    rules: StopRules
    source: str
    tour: int = 0
    is_projected: bool = False
    problems: tuple[str, ...] = ()


def holds_text(prompt: str, choices: tuple[Choice, ...]) -> bool:
    """Whether an address has room for the whole text."""
    return len(prompt) <= MAX_LINKED_CHARACTERS and len(choices) <= MAX_NEW_TOKENS


def to_query(prompt: str, choices: tuple[Choice, ...], params: SamplingParams, rules: StopRules, source: str) -> dict[str, str | list[str]]:
    """The query parameters of a state; values at their default are left out."""
    query: dict[str, str | list[str]] = {}
    if source != "modele":
        query["source"] = source
    if len(prompt) <= MAX_LINKED_CHARACTERS:
        query["texte"] = prompt
        if choices and holds_text(prompt, choices):
            query["suite"] = ".".join(f"{choice.token_id}{'f' if choice.forced else ''}" for choice in choices)
    for key, (field, _) in _PARAM_KEYS.items():
        value = getattr(params, field)
        if value != getattr(DEFAULT_PARAMS, field):
            query[key] = _OFF if value is None else str(value).removesuffix(".0")
    if rules.max_new_tokens != StopRules().max_new_tokens:
        query["max"] = str(rules.max_new_tokens)
    if rules.stop_sequences:
        query["stop"] = list(rules.stop_sequences)
    return query


def from_query(query: Mapping[str, list[str]], sources: tuple[str, ...]) -> LinkState:
    """Read query parameters. Never raises: a value that makes no sense is reported and its default stands."""
    query = {key: values for key, values in query.items() if values}
    problems: list[str] = []

    def refuse(key: str, reason: str) -> None:
        problems.append(f"« {key} » : {reason} La valeur par défaut la remplace.")

    values = {field: getattr(DEFAULT_PARAMS, field) for field, _ in _PARAM_KEYS.values()}
    for key, (field, read) in _PARAM_KEYS.items():
        if key not in query:
            continue
        text = query[key][-1]
        try:
            value = None if text == _OFF else read(text)
            SamplingParams(**{field: value})
            values[field] = value
        except InvalidParameter as error:
            refuse(key, str(error))
        except (ValueError, OverflowError):
            refuse(key, "ce n’est pas un nombre.")
    rules = StopRules()
    try:
        rules = StopRules(int(query["max"][-1]) if "max" in query else rules.max_new_tokens)
    except InvalidParameter as error:
        refuse("max", str(error))
    except ValueError:
        refuse("max", "ce n’est pas un nombre.")
    try:
        rules = StopRules(rules.max_new_tokens, tuple(query.get("stop", ())[: MAX_STOP_SEQUENCES + 1]))
    except InvalidParameter as error:
        refuse("stop", str(error))
    source = query.get("source", [sources[0]])[-1]
    if source not in sources:
        refuse("source", "cette source n’existe pas.")
        source = sources[0]
    tour = query.get("visite", ["0"])[-1]
    if tour not in TOUR_STEPS:
        refuse("visite", f"c’est une étape de 1 à {len(TOUR_STEPS) - 1}.")
        tour = "0"
    return LinkState(
        prompt=query["texte"][-1] if "texte" in query else None,
        token_ids=_read_tokens(query, refuse),
        params=SamplingParams(**values),
        rules=rules,
        source=source,
        tour=int(tour),
        is_projected=query.get("projecteur") == ["1"],
        problems=tuple(problems),
    )


def _read_tokens(query: Mapping[str, list[str]], refuse) -> tuple[tuple[int, bool], ...]:
    text = query.get("suite", [""])[-1]
    if not text:
        return ()
    words = text.split(".", MAX_NEW_TOKENS)
    if len(words) > MAX_NEW_TOKENS or not all(word.removesuffix("f").isascii() and word.removesuffix("f").isdigit() for word in words):
        refuse("suite", f"ce n’est pas une suite d’au plus {MAX_NEW_TOKENS} identifiants de tokens.")
        return ()
    if any(len(word) > 9 for word in words):
        refuse("suite", "un identifiant dépasse le vocabulaire.")
        return ()
    return tuple((int(word.removesuffix("f")), word.endswith("f")) for word in words)
