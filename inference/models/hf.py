"""A causal model of transformers, run on this machine."""

import copy
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from safetensors import SafetensorError
from transformers import AutoModelForCausalLM, AutoTokenizer, DynamicCache, PreTrainedModel
from transformers.cache_utils import DynamicLayer
from transformers.utils import logging as transformers_logging

from inference.allocator import reuse_large_blocks
from inference.errors import UserError
from inference.models.base import Architecture, Forward, ModelInfo, State, checked_ids
from inference.records import Scores
from inference.tokens import Vocabulary, byte_level_bytes, sentencepiece_bytes

transformers_logging.disable_progress_bar()

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


class HfModel:
    """`Model` over a transformers causal model in evaluation mode, one text at a time. Raises ValueError for an architecture whose
    state is more than keys and values, or that names no context length.

    The state is transformers' own `DynamicCache`. Its layers grow by concatenation, into new tensors, so a copy of the cache that
    shares its tensors is a snapshot that later steps never touch: rewinding and branching cost nothing.
    """

    def __init__(self, model: PreTrainedModel, tokenizer, name: str, revision: str, hub_id: str | None = None):
        reuse_large_blocks()
        self.model = model.eval()
        config = model.config.get_text_config()
        if not hasattr(config, "max_position_embeddings"):
            raise ValueError("this architecture does not say how long a text it takes")
        if not all(isinstance(layer, DynamicLayer) for layer in DynamicCache(config=model.config).layers):
            raise ValueError("this architecture keeps a state that cannot be shared between texts")
        eos_ids = model.generation_config.eos_token_id
        self.info = ModelInfo(
            name=name,
            revision=revision,
            dtype=str(model.dtype).removeprefix("torch."),
            context_length=config.max_position_embeddings,
            eos_ids=frozenset([eos_ids] if isinstance(eos_ids, int) else eos_ids or []),
            hub_id=hub_id or name,
            weights_bytes=weights_bytes(model),
            architecture=_architecture(model),
        )
        self.vocabulary = make_vocabulary(tokenizer, config.vocab_size)

    def prefill(self, token_ids: Sequence[int], state: State | None = None) -> Forward:
        logits, read = self._read(token_ids, state, kept=1)
        return Forward(Scores(logits[-1]), read)

    def verify(self, token_ids: Sequence[int], state: State) -> tuple[np.ndarray, State]:
        """Read proposed tokens after those of `state`: (n, vocab_size) float32, the scores after each of them, and the state after all."""
        return self._read(token_ids, state, kept=0)

    def _read(self, token_ids: Sequence[int], state: State | None, kept: int) -> tuple[np.ndarray, State]:
        """The scores after the last `kept` tokens, after every one when 0, and the state."""
        read = checked_ids(self.info, token_ids, state)
        cache = snapshot(state.payload) if state else DynamicCache(config=self.model.config)
        with torch.inference_mode():
            logits = self.model(torch.tensor([list(token_ids)]), cache=cache, use_cache=True, logits_to_keep=kept).logits[0]
        _let_go_of_what_slid_out(cache)
        return logits.float().numpy(), State(read, cache, _nbytes(cache))

    def logits_along(self, token_ids: Sequence[int]) -> np.ndarray:
        """(n, vocab_size) float32: the scores of the token after each of `token_ids`, read in one pass."""
        checked_ids(self.info, token_ids, None)
        with torch.inference_mode():
            return self.model(torch.tensor([list(token_ids)]), use_cache=False).logits[0].float().numpy()

    def decode(self, token_id: int, state: State) -> Forward:
        return self.prefill((token_id,), state)

    def truncate(self, state: State, length: int) -> State | None:
        cache = snapshot(state.payload)
        try:
            cache.crop(length - len(state.token_ids))
        except RuntimeError:  # a sliding window has already let go of the tokens before it
            return None
        return State(state.token_ids[:length], cache, _nbytes(cache))


def weights_bytes(model: PreTrainedModel) -> int:
    """Of all parameters; one that serves twice is stored once."""
    return sum(parameter.nbytes for parameter in model.parameters())


def _architecture(model: PreTrainedModel) -> Architecture:
    """What a configuration says of its layers. Older ones name no key-value heads and no head size."""
    config = model.config.get_text_config()
    windows = [layer.sliding_window for layer in DynamicCache(config=model.config).layers if layer.is_sliding]
    return Architecture(
        layers=config.num_hidden_layers,
        sliding_layers=len(windows),
        window=windows[0] if windows else config.max_position_embeddings,
        query_heads=config.num_attention_heads,
        kv_heads=getattr(config, "num_key_value_heads", None) or config.num_attention_heads,
        head_size=getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads,
        element_bytes=model.dtype.itemsize,
    )


def snapshot(cache: DynamicCache) -> DynamicCache:
    """A cache that shares the tensors of `cache` and grows apart from it."""
    apart = copy.copy(cache)
    apart.layers = [copy.copy(layer) for layer in cache.layers]
    return apart


def _let_go_of_what_slid_out(cache: DynamicCache) -> None:
    """A sliding layer keeps a view of its last tokens, and with it the memory of all those read in the same pass."""
    for layer in cache.layers:
        if layer.is_initialized and layer.keys.untyped_storage().nbytes() > layer.keys.nbytes:
            layer.keys, layer.values = layer.keys.clone(), layer.values.clone()


def _nbytes(cache: DynamicCache) -> int:
    return sum(layer.keys.nbytes + layer.values.nbytes for layer in cache.layers if layer.is_initialized)


def make_vocabulary(tokenizer, vocab_size: int) -> Vocabulary:
    """The vocabulary of a transformers tokenizer that is backed by the tokenizers library."""
    backend = getattr(tokenizer, "backend_tokenizer", tokenizer)
    backend.no_truncation()  # either may have been left in tokenizer.json
    backend.no_padding()
    special = frozenset(token_id for token_id, token in backend.get_added_tokens_decoder().items() if token.special)
    to_bytes = byte_level_bytes if "ByteLevel" in repr(backend.decoder) else sentencepiece_bytes
    return Vocabulary(vocab_size, backend.id_to_token, lambda text: backend.encode(text).ids, to_bytes, special)


def load_pretrained(name: str, revision: str | None, dtype: str) -> HfModel:
    """A model chosen by whoever starts the app: a local folder, a `.gguf` file or a hub id.

    Weights are read from safetensors or GGUF, never unpickled, and code that comes with a model is never run.
    """
    path = Path(name).expanduser()
    options = {"trust_remote_code": False, "revision": revision or "main"}
    source = name
    if path.suffix == ".gguf":
        source = str(path.parent)
        options["gguf_file"] = path.name
    elif path.is_dir():
        source = str(path)
    try:
        tokenizer = AutoTokenizer.from_pretrained(source, **options)
        if not hasattr(tokenizer, "backend_tokenizer"):
            raise UserError(f"Le modèle « {name} » n’a pas de tokenizer rapide (tokenizer.json). Choisissez-en un autre.")
        safetensors = {} if "gguf_file" in options else {"use_safetensors": True}
        model, loading = AutoModelForCausalLM.from_pretrained(
            source, dtype=DTYPES[dtype], output_loading_info=True, **options, **safetensors
        )
        if loading["missing_keys"]:  # transformers would fill them with random numbers
            raise ValueError(f"missing weights: {', '.join(sorted(loading['missing_keys'])[:3])}")
        shown = path.name if path.exists() else name  # a visitor need not know the server's folders
        return HfModel(model, tokenizer, shown, getattr(model.config, "_commit_hash", None) or revision or "local")
    except (OSError, ValueError, KeyError, RuntimeError, SafetensorError) as error:
        raise UserError(
            f"Impossible de charger le modèle « {name} ». Vérifiez INFERENCE_MODEL : un dossier local, un fichier .gguf ou un nom "
            f"de dépôt, avec des poids au format safetensors ou GGUF. Détail : {_first_line(error)}"
        ) from error


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
