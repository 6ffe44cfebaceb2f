"""Fewer bits per weight, with the products torch has for packed weights on a processor.

int8  one scale per output row (Dettmers et al. 2022, « LLM.int8() », keeps activations wider as well). The embedding table is stored
      once and serves both to look tokens up and to score them, since its scales go by token.
int4  groups of 32 weights with a scale and a minimum each, in the layers; the table stays in int8, for in four bits it spoils the scores.

Activations are bfloat16: with float32 ones these products are slower than no quantization at all.
"""

import copy
from collections.abc import Callable
from dataclasses import replace

import torch
from torch import nn
from transformers import PreTrainedModel

from inference.errors import UserError
from inference.models.hf import HfModel, weights_bytes

BITS = {"bfloat16": 16, "int8": 8, "int4": 4}
INT4_GROUP = 32
TABLE_ROWS = 16_384
"""Of the embedding table, quantized at a time."""


class Int8Linear(nn.Module):
    """x (…, in) → (…, out), from `weight` (out, in) int8 and `scale` (out)."""

    def __init__(self, weight: nn.Parameter, scale: nn.Parameter):
        super().__init__()
        self.weight, self.scale = weight, scale

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows = x.reshape(-1, x.shape[-1])
        return torch._weight_int8pack_mm(rows, self.weight, self.scale).reshape(*x.shape[:-1], -1)


class Int8Embedding(nn.Module):
    """Token ids (…) → their rows (…, hidden), times the `factor` by which the model scales its embeddings."""

    def __init__(self, weight: nn.Parameter, scale: nn.Parameter, factor: float):
        super().__init__()
        self.weight, self.scale, self.factor = weight, scale, factor

    def forward(self, token_ids: torch.Tensor) -> torch.Tensor:
        return self.weight[token_ids].to(self.scale.dtype) * self.scale[token_ids].unsqueeze(-1) * self.factor


class Int4Linear(nn.Module):
    """x (…, in) → (…, out), from weights packed two to a byte and `scales` (in / 32, out, 2): a step, and the value of code 8."""

    def __init__(self, weight: torch.Tensor):
        super().__init__()
        codes, step, low = int4_codes(weight)
        self.weight = _constant(torch.ops.aten._convert_weight_to_int4pack_for_cpu(codes, 1))
        self.scales = _constant(torch.stack((step, low + 8 * step), -1).transpose(0, 1).contiguous().to(weight.dtype))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows = x.reshape(-1, x.shape[-1])
        return torch.ops.aten._weight_int4pack_mm_for_cpu(rows, self.weight, INT4_GROUP, self.scales).reshape(*x.shape[:-1], -1)


def open_precision(model: HfModel, precision: str) -> HfModel:
    """The same model with fewer bits per weight: a copy of its weights in bfloat16, then quantized.

    Raises `UserError` for an architecture whose embeddings or output cannot be told apart.
    """
    network = model.model
    try:
        copied = type(network).from_pretrained(None, config=network.config, state_dict=network.state_dict(), dtype=torch.bfloat16).eval()
        if BITS[precision] < 16:
            quantize(copied, BITS[precision])
    except (ValueError, RuntimeError, AttributeError) as error:
        raise UserError(f"Les poids du modèle « {model.info.name} » ne se laissent pas ranger en {precision}.") from error
    other = copy.copy(model)
    other.model = copied
    shape = replace(model.info.architecture, element_bytes=copied.dtype.itemsize)
    other.info = replace(model.info, dtype=precision, weights_bytes=weights_bytes(copied), architecture=shape)
    return other


def quantize(model: PreTrainedModel, bits: int) -> None:
    """Put 8- or 4-bit weights in the place of every linear layer's, and of the embedding table when it also scores the tokens.

    Layers with a bias, and those that are no `nn.Linear`, keep theirs. In place, on a bfloat16 model. Raises ValueError for another dtype
    or number of bits.
    """
    if model.dtype != torch.bfloat16 or bits not in (4, 8):
        raise ValueError(f"8 or 4 bits on a bfloat16 model, not {bits} on {model.dtype}")
    head, table = model.get_output_embeddings(), model.get_input_embeddings()
    if head.bias is None:
        weight, scale = int8_parameters(head.weight)
        if head.weight is table.weight:
            model.set_input_embeddings(Int8Embedding(weight, scale, float(getattr(table, "embed_scale", 1.0))))
        model.set_output_embeddings(Int8Linear(weight, scale))
    make: Callable[[torch.Tensor], nn.Module] = Int4Linear if bits == 4 else lambda weight: Int8Linear(*int8_parameters(weight))
    decoder = model.get_decoder()
    for name, layer in list(decoder.named_modules()):
        if isinstance(layer, nn.Linear) and layer.bias is None:
            decoder.set_submodule(name, make(layer.weight))


def int8_parameters(weight: torch.Tensor) -> tuple[nn.Parameter, nn.Parameter]:
    """Codes (out, in) int8 and scales (out): weight ≈ code × scale, the largest of a row being ±127."""
    codes = torch.empty(weight.shape, dtype=torch.int8)
    scales = torch.empty(len(weight), dtype=weight.dtype)
    for start in range(0, len(weight), TABLE_ROWS):
        rows = weight.detach()[start : start + TABLE_ROWS].float()
        scale = (rows.abs().amax(dim=1).clamp(min=1e-12) / 127).to(weight.dtype)
        codes[start : start + TABLE_ROWS] = (rows / scale[:, None]).round().clamp(-127, 127).to(torch.int8)
        scales[start : start + TABLE_ROWS] = scale
    return _constant(codes), _constant(scales)


def int4_codes(weight: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Codes (out, in) int32 in [0, 15], steps and minima (out, in / 32): weight ≈ low + code × step in each group of 32."""
    groups = weight.detach().float().unflatten(1, (-1, INT4_GROUP))
    low, high = groups.amin(dim=-1), groups.amax(dim=-1)
    step = ((high - low) / 15).clamp(min=1e-12)
    codes = ((groups - low[..., None]) / step[..., None]).round().clamp(0, 15).to(torch.int32)
    return codes.flatten(1), step, low


def _constant(tensor: torch.Tensor) -> nn.Parameter:
    """Counted among the model's parameters, and never trained."""
    return nn.Parameter(tensor, requires_grad=False)
