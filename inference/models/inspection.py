"""One forward pass of a transformers model with its insides kept."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from weakref import WeakKeyDictionary

import torch
from transformers import DynamicCache, PreTrainedModel

from inference.errors import UserError
from inference.forward_pass import ForwardPass, Neighbours, check_length, read_logits
from inference.models.base import checked_ids
from inference.models.hf import HfModel

_FINAL_NORMS = ("norm", "ln_f", "final_layer_norm", "final_layernorm")
"""What the architectures call the norm between their last layer and the output matrix: Llama and Gemma, GPT-2, GPT-NeoX, Phi."""

_HEAD_TOLERANCE = 0.05
"""Share of the largest logit. bfloat16 rounds away half a hundredth; a head that also scales its logits is off by far more."""

_TABLE_ROWS = 32_768
"""Of the embedding table, converted to float32 at a time."""

_table_norms: WeakKeyDictionary[HfModel, torch.Tensor] = WeakKeyDictionary()


def inspect(model: HfModel, token_ids: Sequence[int], position: int = -1, neighbours: int = 6, top: int = 5) -> ForwardPass:
    """Read `token_ids` in one pass and keep what happens on the way; the lens is held at `position`.

    The model computes its attention another way meanwhile, so the caller keeps every other thread out of it, as for `prefill`.
    Raises `UserError` for a text that is empty or too long and for an architecture whose layers cannot be read, `IndexError` for a
    position outside the text.
    """
    token_ids = checked_ids(model.info, token_ids, None)
    check_length(len(token_ids))
    position = range(len(token_ids))[position]
    layers = DynamicCache(config=model.model.config).layers
    with torch.inference_mode():
        with _eager_attention(model.model):
            output = model.model(
                torch.tensor([token_ids]),
                use_cache=False,
                output_hidden_states=True,
                output_attentions=True,
                logits_to_keep=torch.tensor([position]),
            )
        hidden_states, attentions = output.hidden_states or (), output.attentions or ()
        if (len(hidden_states), len(attentions)) != (len(layers) + 1, len(layers)):
            raise _unreadable(model)
        logits = output.logits[0, -1].float()
        lens = _lens_logits(model, torch.stack([state[0, position] for state in hidden_states]), logits).numpy()
        favourite_id = int(logits.argmax())
        return ForwardPass(
            token_ids=token_ids,
            embedding_norms=hidden_states[0][0].float().norm(dim=-1).numpy(),
            neighbours=_nearest_rows(model, token_ids, neighbours),
            layer_types=tuple("sliding" if layer.is_sliding else "full" for layer in layers),
            window=next((layer.sliding_window for layer in layers if layer.is_sliding), None),
            attentions=torch.stack([weights[0] for weights in attentions]).float().numpy(),
            position=position,
            lens=tuple(read_logits(row, favourite_id, top) for row in lens),
            logits=logits.numpy(),
        )


@contextmanager
def _eager_attention(model: PreTrainedModel) -> Iterator[None]:
    """Attention as matrices one can look at: the fused kernels never write its weights down."""
    before = model.config._attn_implementation
    try:
        model.set_attn_implementation("eager")
        yield
    finally:
        model.set_attn_implementation(before)


def _lens_logits(model: HfModel, states: torch.Tensor, logits: torch.Tensor) -> torch.Tensor:
    """Logits (L + 1, vocab_size) float32 read off `states` (L + 1, hidden_size), the last of which transformers has already normed.

    `logits` are those of the model's own head. They are the last row, and the proof that the others are made as the model does.
    """
    decoder, head = model.model.get_decoder(), model.model.get_output_embeddings()
    norm = next((found for name in _FINAL_NORMS if (found := getattr(decoder, name, None)) is not None), None)
    if norm is None or head is None:
        raise _unreadable(model)
    rows = head(torch.cat([norm(states[:-1]), states[-1:]])).float()
    softcap = getattr(model.model.config.get_text_config(), "final_logit_softcapping", None)
    if softcap is not None:  # Gemma 2, arXiv:2408.00118
        rows = torch.tanh(rows / softcap) * softcap
    if (rows[-1] - logits).abs().max() > _HEAD_TOLERANCE * logits.abs().max():
        raise _unreadable(model)
    rows[-1] = logits
    return rows


def _nearest_rows(model: HfModel, token_ids: tuple[int, ...], neighbours: int) -> tuple[Neighbours, ...]:
    table = model.model.get_input_embeddings().weight
    norms = _table_norms.get(model)
    if norms is None:  # a row of zeros, as padding may have, is near to nothing
        norms = torch.cat([rows.float().norm(dim=1) for rows in table.split(_TABLE_ROWS)]).clamp_min(1e-12)
        _table_norms[model] = norms
    ids = torch.tensor(token_ids)
    directions = table[ids].float() / norms[ids, None]
    cosines = torch.cat([directions @ rows.float().T for rows in table.split(_TABLE_ROWS)], dim=1)
    cosines.div_(norms).clamp_(-1, 1)
    cosines[torch.arange(len(ids)), ids] = -torch.inf
    nearest = cosines.topk(neighbours, dim=1)
    return tuple(Neighbours(tuple(row), tuple(values)) for row, values in zip(nearest.indices.tolist(), nearest.values.tolist()))


def _unreadable(model: HfModel) -> UserError:
    return UserError(
        f"Les couches du modèle « {model.info.name} » ne se laissent pas lire une à une : son architecture n’est pas prévue ici. "
        "Choisissez-en un autre, Gemma 3, Llama ou Qwen par exemple."
    )
