"""A model whose figures are written by hand in a data file: for the walkthrough, and for tests that need no weights."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from inference.errors import UserError
from inference.models.base import Forward, ModelInfo, State, checked_ids
from inference.records import Scores
from inference.tokens import Vocabulary, sentencepiece_bytes

CONTEXT_LENGTH = 256


class ScriptedModel:
    """`Model` read from `assets/scenarios/*.json`.

    The file lists the vocabulary, and for the last tokens of a text the percentages of those that may follow; the longest ending
    that matches wins, and the empty ending always does. What a distribution leaves out of 100 % is shared equally by the other
    tokens. Logits are the log-probabilities, raised so that the favourite's is the file's `top_logit`.
    """

    def __init__(self, path: Path):
        scenario = json.loads(path.read_text(encoding="utf-8"))
        self._pieces: list[str] = scenario["vocabulary"]
        self._ids = {piece: token_id for token_id, piece in enumerate(self._pieces)}
        self._top_logit = float(scenario["top_logit"])
        special = frozenset(self._ids[piece] for piece in scenario["special"])
        self.info = ModelInfo(
            name=scenario["name"],
            revision=str(scenario["revision"]),
            dtype="",
            context_length=CONTEXT_LENGTH,
            eos_ids=frozenset([self._ids[scenario["end_token"]]]),
            is_illustrative=True,
        )
        size = len(self._pieces)
        self.vocabulary = Vocabulary(size, lambda i: self._pieces[i] if i < size else None, self._encode, sentencepiece_bytes, special)
        self._opening = self._ids[scenario["opening_token"]]
        self._rules = {tuple(self._ids[piece] for piece in rule["after"]): self._logits(rule["percent"]) for rule in scenario["rules"]}

    def prefill(self, token_ids: Sequence[int], state: State | None = None) -> Forward:
        read = checked_ids(self.info, token_ids, state)
        ending = next(read[start:] for start in range(len(read) + 1) if read[start:] in self._rules)
        return Forward(Scores(self._rules[ending]), State(read))

    def decode(self, token_id: int, state: State) -> Forward:
        return self.prefill((token_id,), state)

    def truncate(self, state: State, length: int) -> State:
        return State(state.token_ids[:length])

    def _logits(self, percent: dict[str, float]) -> np.ndarray:
        rest = 100.0 - sum(percent.values())
        others = len(self._pieces) - len(percent)
        probs = np.full(len(self._pieces), rest / 100 / others)
        for piece, value in percent.items():
            probs[self._ids[piece]] = value / 100
        logits = np.log(probs)
        return (logits + self._top_logit - logits.max()).astype(np.float32)

    def _encode(self, text: str) -> list[int]:
        """Longest match first; characters outside the little vocabulary are refused."""
        ids, at, text = [self._opening], 0, text.replace(" ", "▁")
        while at < len(text):
            match = max((piece for piece in self._pieces if text.startswith(piece, at)), key=len, default=None)
            if match is None:
                raise UserError(
                    "Les chiffres de la fiche ne connaissent que la phrase de l’exemple. Pour un autre texte, passez au modèle réel."
                )
            ids.append(self._ids[match])
            at += len(match)
        return ids
