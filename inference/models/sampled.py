"""Several continuations of one prompt, drawn together."""

from collections.abc import Sequence

import torch

from inference.models.base import Forward
from inference.models.hf import HfModel, snapshot

TokenIds = tuple[int, ...]


class Branches:
    """What may follow a prompt that was read: a batch with one row for each different text written so far.

    Probabilities are over the whole vocabulary: exponentials in float32, added up in float64. The prompt's state is left as it is.
    """

    def __init__(self, model: HfModel, prompt: Forward, temperature: float):
        self._network = model.model
        self._cache = snapshot(prompt.state.payload)
        self._temperature = temperature
        self._keep({(): 0}, torch.tensor(prompt.scores.logits)[None])

    def draw(self, text: TokenIds, u: float) -> tuple[int, float]:
        """The token on which u, in [0, 1), falls after a text, the vocabulary lying end to end by id; its log-probability in nats at
        temperature 1. Raises KeyError for a text that is not a row."""
        row = self._rows[text]
        line = self._lines[row]
        token_id = int(torch.searchsorted(line, u * line[-1], right=True))
        return token_id, float(self._logits[row, token_id] - self._norms[row])

    def read(self, texts: Sequence[TokenIds]) -> None:
        """Go on with these texts, each a token longer than one of the rows, in one pass. Equal texts share a row; other rows are let go."""
        rows = {text: row for row, text in enumerate(dict.fromkeys(texts))}
        self._cache.batch_select_indices(torch.tensor([self._rows[text[:-1]] for text in rows]))
        with torch.inference_mode():
            last = torch.tensor([text[-1:] for text in rows])
            logits = self._network(last, cache=self._cache, use_cache=True, logits_to_keep=1).logits[:, -1].float()
        self._keep(rows, logits)

    def _keep(self, rows: dict[TokenIds, int], logits: torch.Tensor) -> None:
        self._rows, self._logits = rows, logits
        self._norms = logits.logsumexp(-1)
        heights = torch.exp((logits - logits.amax(-1, keepdim=True)) / self._temperature)
        self._lines = heights.cumsum(-1, dtype=torch.float64)
