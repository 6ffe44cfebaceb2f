"""The bytes of a network: for a fingerprint, or to see how long they take from the disk."""

from collections.abc import Iterator

import torch

from inference.models.hf import HfModel

CHUNK_BYTES = 2**25


def weight_chunks(model: HfModel) -> Iterator[bytes | memoryview]:
    """All that a network keeps from one pass to the next, its weights and the few numbers beside them: for each tensor its name, its type
    and its shape, then its bytes, at most `CHUNK_BYTES` at a time. A tensor that serves twice comes once. Nothing is copied: nobody
    else need be kept out of the model, whose passes write to none of it.
    """
    for name, tensor in (*model.model.named_parameters(), *model.model.named_buffers()):
        yield f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode()
        content = tensor.detach().contiguous().reshape(-1).view(torch.uint8).numpy()
        for start in range(0, len(content), CHUNK_BYTES):
            yield content[start : start + CHUNK_BYTES].data
