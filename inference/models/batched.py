"""The same logits computed another way, and the additions behind one of them."""

from collections.abc import Sequence

import numpy as np
import torch

from inference.models.base import checked_ids
from inference.models.hf import HfModel


def logits_in_batch(model: HfModel, texts: Sequence[Sequence[int]]) -> np.ndarray:
    """(rows, vocab_size) float32: the scores of the token after each text, all read in one pass.

    Texts of one length, so that no row is padded. Raises ValueError for several lengths, `UserError` for texts empty or too long.
    """
    for token_ids in texts:
        checked_ids(model.info, token_ids, None)
    with torch.inference_mode():
        output = model.model(torch.tensor([list(token_ids) for token_ids in texts]), use_cache=False, logits_to_keep=1)
    return output.logits[:, -1].float().numpy()


def thread_count() -> int:
    """How many threads torch computes on."""
    return torch.get_num_threads()


def logits_on_threads(model: HfModel, token_ids: Sequence[int], threads: int) -> np.ndarray:
    """(vocab_size,) float32: the scores of the token after a text read alone, on so many threads.

    The whole process computes on them meanwhile, so the caller keeps every other thread out of the model.
    """
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(threads)
        return logits_in_batch(model, [token_ids])[0]
    finally:
        torch.set_num_threads(before)


def logit_terms(model: HfModel, token_ids: Sequence[int], token_id: int) -> tuple[np.ndarray, float]:
    """(terms,) float32 whose sum is the logit of `token_id` after a text, and that logit as the model adds them up.

    A term is a number of the last hidden state times the one it meets in the output matrix; the bias, where there is one, is the last.
    """
    seen = []
    head = model.model.get_output_embeddings()
    hook = head.register_forward_hook(lambda _, inputs, output: seen.append((inputs[0][0, -1], output[0, -1])))
    try:
        logits_in_batch(model, [token_ids])
    finally:
        hook.remove()
    (hidden, logits), *_ = seen
    with torch.inference_mode():
        terms = hidden.float() * head.weight[token_id].float()
        if head.bias is not None:
            terms = torch.cat([terms, head.bias[token_id].float().reshape(1)])
    return terms.numpy(), float(logits[token_id])
