"""A draft of a Gemma 3: the same layers in int8, and an output that only knows the likeliest tokens.

A draft is worth its time: transformers' own layers, in int8, take as long as the model they would draft for, since most of a decode
then goes between operations. So each layer is written here in the fewest operations torch has for it, and the output keeps one row of
the table in eight (Zhao et al. 2025, « FR-Spec »). Nothing of what the draft says is shown as the model's: the model checks every token.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch.nn import functional
from transformers.models.gemma3.modeling_gemma3 import Gemma3DecoderLayer, Gemma3ForCausalLM

from inference.errors import UserError
from inference.models.hf import HfModel
from inference.models.quantization import Int8Linear, int8_parameters

MAX_TOKENS = 512
DTYPE = torch.bfloat16


def int8_rows(*weights: torch.Tensor) -> Int8Linear:
    """One product for the rows of one or more matrices."""
    return Int8Linear(*int8_parameters(torch.cat(weights).to(DTYPE)))


class Norm:
    """Root mean square normalization; Gemma stores its weights less one."""

    def __init__(self, module):
        self.weight, self.eps = (1 + module.weight.float()).to(DTYPE), module.eps

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return functional.rms_norm(x, self.weight.shape, self.weight, self.eps)


class DraftLayer:
    """One decoder layer and its keys and values, (kv_heads, MAX_TOKENS, head_size) each."""

    def __init__(self, layer: Gemma3DecoderLayer):
        attention, mlp, config = layer.self_attn, layer.mlp, layer.config
        self.kind = config.layer_types[attention.layer_idx]
        self.query_heads, self.kv_heads = config.num_attention_heads, config.num_key_value_heads
        self.scaling = attention.scaling
        self.before_attention, self.after_attention = Norm(layer.input_layernorm), Norm(layer.post_attention_layernorm)
        self.before_mlp, self.after_mlp = Norm(layer.pre_feedforward_layernorm), Norm(layer.post_feedforward_layernorm)
        self.query_norm, self.key_norm = Norm(attention.q_norm), Norm(attention.k_norm)
        self.to_heads = int8_rows(attention.q_proj.weight, attention.k_proj.weight, attention.v_proj.weight)
        self.from_heads = int8_rows(attention.o_proj.weight)
        self.to_mlp, self.from_mlp = int8_rows(mlp.gate_proj.weight, mlp.up_proj.weight), int8_rows(mlp.down_proj.weight)
        self.keys, self.values = torch.zeros(2, self.kv_heads, MAX_TOKENS, attention.head_dim, dtype=DTYPE)

    def __call__(self, x: torch.Tensor, start: int, rotation: tuple[torch.Tensor, torch.Tensor], mask: torch.Tensor) -> torch.Tensor:
        """x (n, hidden) at the positions from `start`; `mask` (n, start + n) says who attends to whom."""
        end = start + len(x)
        heads = self.to_heads(self.before_attention(x)).view(len(x), -1, self.keys.shape[-1]).transpose(0, 1)
        queries, keys, self.values[:, start:end] = heads.split((self.query_heads, self.kv_heads, self.kv_heads))
        queries, self.keys[:, start:end] = _rotate(self.query_norm(queries), rotation), _rotate(self.key_norm(keys), rotation)
        attended = functional.scaled_dot_product_attention(
            queries[None], self.keys[None, :, :end], self.values[None, :, :end], mask, scale=self.scaling, enable_gqa=True
        )
        x = x + self.after_attention(self.from_heads(attended[0].transpose(0, 1).reshape(len(x), -1)))
        gate, up = self.to_mlp(self.before_mlp(x)).chunk(2, -1)
        return x + self.after_mlp(self.from_mlp(functional.gelu(gate, approximate="tanh") * up))


def _rotate(heads: torch.Tensor, rotation: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
    """Rotary positions (Su et al. 2021), as transformers pairs the coordinates."""
    cos, sin = rotation
    first, second = heads.chunk(2, -1)
    return heads * cos + torch.cat((-second, first), -1) * sin


class Gemma3Draft:
    """Scores of the next token among `token_ids` only. Keeps the keys and values of the last text it read, for one caller at a time."""

    def __init__(self, network: Gemma3ForCausalLM, token_ids: Sequence[int]):
        decoder, self.token_ids = network.model, np.asarray(token_ids)
        self.window = decoder.config.sliding_window
        self.table, self.factor = decoder.embed_tokens.weight, float(decoder.embed_tokens.embed_scale)
        self.layers = [DraftLayer(layer) for layer in decoder.layers]
        self.norm = Norm(decoder.norm)
        self.head = int8_rows(network.lm_head.weight[torch.as_tensor(self.token_ids)])
        positions = torch.arange(MAX_TOKENS)[None]
        self.rotations = {
            kind: tuple(part[0] for part in decoder.rotary_emb(torch.empty(0, dtype=DTYPE), positions, kind))
            for kind in {layer.kind for layer in self.layers}
        }
        self.read: tuple[int, ...] = ()

    def logits_after(self, text_ids: Sequence[int]) -> np.ndarray:
        """(len(self.token_ids),) float32. What the text shares with the last one read is not read again. Raises ValueError for no
        token, or more than MAX_TOKENS."""
        text_ids = tuple(text_ids)
        if not 0 < len(text_ids) <= MAX_TOKENS:
            raise ValueError(f"1 to {MAX_TOKENS} tokens, not {len(text_ids)}")
        start = _shared(self.read, text_ids[:-1])
        with torch.inference_mode():
            logits = self._forward(torch.tensor(text_ids[start:]), start)
        self.read = text_ids
        return logits.float().numpy()

    def _forward(self, token_ids: torch.Tensor, start: int) -> torch.Tensor:
        end = start + len(token_ids)
        age = torch.arange(start, end)[:, None] - torch.arange(end)
        masks = {"full_attention": age >= 0, "sliding_attention": (age >= 0) & (age < self.window)}
        rotations = {kind: (cos[start:end], sin[start:end]) for kind, (cos, sin) in self.rotations.items()}
        x = (self.table[token_ids] * self.factor).to(DTYPE)
        for layer in self.layers:
            x = layer(x, start, rotations[layer.kind], masks[layer.kind])
        return self.head(self.norm(x[-1:]))[0]


def open_draft(model: HfModel, token_ids: Sequence[int]) -> Gemma3Draft:
    """A draft of the running model. Raises `UserError` for another architecture than Gemma 3."""
    if not isinstance(model.model, Gemma3ForCausalLM):
        raise UserError("Le brouillon de ce laboratoire est écrit pour Gemma 3 : il ne sait pas imiter le modèle choisi.")
    with torch.inference_mode():
        return Gemma3Draft(model.model, token_ids)


def _shared(one: Sequence[int], other: Sequence[int]) -> int:
    """How many tokens two texts begin with alike."""
    pairs = zip(one, other, strict=False)
    return next((position for position, (left, right) in enumerate(pairs) if left != right), min(len(one), len(other)))
