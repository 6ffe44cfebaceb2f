"""From the GGUF file of the embedded model to the files transformers reads fast: config.json, tokenizer.json, model.safetensors."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from inference.models.gguf_file import GgufTensor

Report = Callable[[str, float], None]
"""Called with a step, one of "wait", "join", "tokenizer", "weights", "load", and how much of it is done, in [0, 1]."""

_BLOCK_BYTES = 16 * 2**20

_LAYER_NAMES = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "attn_output": "self_attn.o_proj",
    "post_attention_norm": "post_attention_layernorm",
    "ffn_norm": "pre_feedforward_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
    "post_ffw_norm": "post_feedforward_layernorm",
}


def write_config(path: Path, metadata: dict) -> None:
    from transformers import Gemma3TextConfig

    def read(key: str):
        return metadata[f"gemma3.{key}"]

    config = Gemma3TextConfig(
        architectures=["Gemma3ForCausalLM"],
        vocab_size=262_144,
        hidden_size=read("embedding_length"),
        intermediate_size=read("feed_forward_length"),
        num_hidden_layers=read("block_count"),
        num_attention_heads=read("attention.head_count"),
        num_key_value_heads=read("attention.head_count_kv"),
        head_dim=read("attention.key_length"),
        query_pre_attn_scalar=read("attention.key_length"),
        max_position_embeddings=read("context_length"),
        rms_norm_eps=read("attention.layer_norm_rms_epsilon"),
        sliding_window=read("attention.sliding_window"),
        bos_token_id=metadata["tokenizer.ggml.bos_token_id"],
        eos_token_id=metadata["tokenizer.ggml.eos_token_id"],
        pad_token_id=metadata["tokenizer.ggml.padding_token_id"],
        dtype="float32",
    )
    path.write_text(config.to_json_string(use_diff=False))


def write_tokenizer(path: Path, gguf_path: Path, report: Report) -> None:
    from transformers import GemmaTokenizer

    report("tokenizer", 0.0)
    tokenizer = GemmaTokenizer.from_pretrained(gguf_path.parent, gguf_file=gguf_path.name)
    tokenizer.backend_tokenizer.save(str(path), pretty=False)


def write_weights(path: Path, tensors: list[GgufTensor], report: Report) -> None:
    """All tensors as float32 safetensors, a block of rows at a time so that memory stays small.

    Format: https://github.com/huggingface/safetensors#format
    """
    header, end = {"__metadata__": {"format": "pt"}}, 0
    for tensor in tensors:
        start, end = end, end + 4 * int(np.prod(tensor.shape))
        header[_transformers_name(tensor.name)] = {"dtype": "F32", "shape": tensor.shape, "data_offsets": [start, end]}
    encoded = json.dumps(header).encode()
    encoded += b" " * (-len(encoded) % 8)
    written = 0
    with path.open("wb") as file:
        file.write(len(encoded).to_bytes(8, "little") + encoded)
        for tensor in tensors:
            for block in _row_blocks(tensor):
                written += file.write(block)
                report("weights", written / end)


def _row_blocks(tensor: GgufTensor) -> Iterator[np.ndarray]:
    rows_per_block = max(1, _BLOCK_BYTES // (4 * tensor.shape[-1]))
    for start in range(0, len(tensor.data), rows_per_block):
        values = tensor.rows(start, start + rows_per_block)
        # llama.cpp stores an RMS norm's weight plus one; transformers adds the one when it runs.
        yield values - np.float32(1) if tensor.name.endswith("norm.weight") else values


def _transformers_name(gguf_name: str) -> str:
    top_level = {"token_embd.weight": "model.embed_tokens.weight", "output_norm.weight": "model.norm.weight"}
    if gguf_name in top_level:
        return top_level[gguf_name]
    _, layer, part, _ = gguf_name.split(".")
    return f"model.layers.{layer}.{_LAYER_NAMES[part]}.weight"
