"""Several texts in one pass of a transformers model: as the rows of a padded tensor, or in transformers' own continuous batching.

The latter is Yu et al. 2022, « Orca », for who enters a pass, and Kwon et al. 2023, « PagedAttention », for the cache in blocks.
"""

import math
from collections.abc import Sequence

import torch
from transformers import ContinuousBatchingConfig, DynamicCache, GenerationConfig

from inference.errors import UserError
from inference.models.hf import HfModel
from inference.serving import Allotment, Pass, Request

BLOCK_TOKENS = 16
NEVER = -1
"""No token ends a text here: each one has its length."""


class PaddedRows:
    """`Rows`: prompts of different lengths aligned on their last token, padding hidden from the attention; greedy."""

    def __init__(self, model: HfModel, prompts: Sequence[tuple[int, ...]]):
        width = max(map(len, prompts))
        padding = [width - len(prompt) for prompt in prompts]
        self._network = model.model
        self._cache = DynamicCache(config=model.model.config)
        self._ids = torch.tensor([[0] * missing + list(prompt) for missing, prompt in zip(padding, prompts, strict=True)])
        self._visible = (torch.arange(width) >= torch.tensor(padding)[:, None]).long()
        self._places = (self._visible.cumsum(1) - 1).clamp_min(0)

    def step(self) -> Pass:
        with torch.inference_mode():
            output = self._network(
                self._ids,
                attention_mask=self._visible,
                position_ids=self._places,
                cache=self._cache,
                use_cache=True,
                logits_to_keep=1,
            )
            chosen = output.logits[:, -1].argmax(-1)
            made = Pass(len(chosen), self._ids.numel(), dict(enumerate(chosen.tolist())))
            self._ids = chosen[:, None]
            self._visible = torch.cat([self._visible, torch.ones_like(chosen[:, None])], 1)
            self._places = self._places[:, -1:] + 1
        return made


class PagedEngine:
    """`Engine`: transformers' scheduler and paged cache, on the running model, a step at a time in the caller's thread rather than in
    the thread transformers would start. Greedy.

    The cache is a tensor of its own, freed by `close`; the model keeps its weights and its attention as they are. Opened, and stepped,
    with every other thread kept out of the model.

    longest  tokens of the longest text, its prompt and what it writes: the cache has room for `slots` of them.

    Raises `UserError` for a model this engine cannot run.
    """

    block_tokens = BLOCK_TOKENS

    def __init__(self, model: HfModel, slots: int, longest: int):
        if model.model.config._attn_implementation != "sdpa":  # it would change the model's attention, for everyone
            raise _unfit(model)
        config = ContinuousBatchingConfig(
            page_size=BLOCK_TOKENS,
            num_blocks=slots * (math.ceil(longest / BLOCK_TOKENS) + 1),
            max_batch_tokens=slots * longest,
            max_requests_per_batch=slots,
            safety_margin=0.0,
            allow_block_sharing=False,
            auto_switch_to_flash=False,
        )
        self._network = model.model
        try:
            with torch.inference_mode():
                self._manager = model.model.init_continuous_batching(GenerationConfig(do_sample=False, eos_token_id=NEVER), config)
                self._manager.warmup()  # makes the processor; there is nothing to capture on a processor
        except (ValueError, AttributeError, MemoryError) as error:
            raise _unfit(model) from error
        self._processor = self._manager.batch_processor
        self.cache_bytes = self._processor.cache.cache_tensor.nbytes

    def add(self, request: Request) -> None:
        self._manager.add_request(list(request.prompt), str(request.number), max_new_tokens=request.tokens, eos_token_id=NEVER)

    def step(self) -> Pass:
        with torch.inference_mode():
            self._processor.prepare_next_batch()
            batch = self._processor.inputs_and_outputs.requests_in_batch
            positions = sum(one.query_length for one in batch)
            allotted = {int(one.state.request_id): self._allotment(one.state) for one in batch}  # before the finished ones leave
            self._processor._generation_step(self._network)
            self._processor.update_batch()
        return Pass(len(batch), positions, {int(one.state.request_id): one.state.generated_tokens[-1] for one in batch}, allotted)

    def _allotment(self, state) -> Allotment:
        tokens, blocks, nbytes, used_bytes = state.current_len(), {}, 0, 0
        for kind, allocator in self._processor.cache.cache_allocators.items():
            blocks[kind] = len(allocator.block_table[state.request_id])
            nbytes += blocks[kind] * allocator.bytes_per_block
            kept = min(tokens, getattr(allocator, "sliding_window", tokens))
            used_bytes += kept * allocator.bytes_per_block // BLOCK_TOKENS
        return Allotment(tokens, blocks, nbytes, used_bytes)

    @property
    def free_share(self) -> float:
        """Of the cache: 1 when no request holds a block."""
        return self._processor.cache.compute_free_capacity()

    def close(self) -> None:
        """Let go of the cache, whatever was being served."""
        self._manager = self._processor = None


def _unfit(model: HfModel) -> UserError:
    return UserError(
        f"Le modèle « {model.info.name} » ne se prête pas au lot continu de transformers sur ce processeur. "
        "Choisissez-en un autre, Gemma 3, Llama ou Qwen par exemple."
    )
