"""What a text weighs in the key-value cache: the formulas, from the crudest to the exact one.

Each layer keeps one key and one value vector per token and per key-value head. Source: Pope et al. 2022, « Efficiently Scaling
Transformer Inference », section 3; grouped-query attention, Ainslie et al. 2023; sliding window, Beltagy et al. 2020.
"""

from inference.models.base import Architecture


def multi_head_bytes(shape: Architecture, tokens: int) -> int:
    """As if every query head had keys and values of its own, in every layer, for every token: the textbook formula."""
    return 2 * shape.layers * shape.query_heads * shape.head_size * shape.element_bytes * tokens


def grouped_bytes(shape: Architecture, tokens: int) -> int:
    """Query heads share their keys and values in groups."""
    return 2 * shape.layers * shape.kv_heads * shape.head_size * shape.element_bytes * tokens


def cache_bytes(shape: Architecture, tokens: int) -> int:
    """And a sliding layer forgets: to read a token it needs the `window` − 1 before it, so it keeps no more."""
    kept = min(tokens, shape.window - 1) if shape.sliding_layers else 0
    full_layers = shape.layers - shape.sliding_layers
    return 2 * shape.kv_heads * shape.head_size * shape.element_bytes * (full_layers * tokens + shape.sliding_layers * kept)
