"""The fingerprint of a network: of all its bytes, and of every one of them."""

import hashlib
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from inference.conversation import fingerprint
from inference.models import weights as module
from inference.models.weights import weight_chunks
from tests.conftest import follow


def digest_of(model) -> str:
    return follow(fingerprint(weight_chunks(model), 0, "empreinte"))[1]


class Network(nn.Module):
    """Two layers that share their weight, one number beside them, and one on sixteen bits."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(4, 4, bias=False), nn.Linear(4, 4, bias=False)
        self.second.weight = self.first.weight
        self.gain = nn.Parameter(torch.tensor([1.0, -2.0], dtype=torch.bfloat16))
        self.register_buffer("scale", torch.tensor(0.5))


@pytest.fixture
def small():
    torch.manual_seed(0)
    return SimpleNamespace(model=Network())


def test_it_is_the_digest_of_names_types_shapes_and_bytes(small):
    expected = hashlib.sha256()
    tensors = {"gain": small.model.gain, "first.weight": small.model.first.weight, "scale": small.model.scale}
    for name, tensor in tensors.items():
        expected.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        expected.update(bytes(tensor.detach().reshape(-1).view(torch.uint8).tolist()))
    assert digest_of(small) == expected.hexdigest()


def test_every_weight_counts_down_to_its_last_bit(small):
    before = digest_of(small)
    with torch.no_grad():
        for tensor in (*small.model.parameters(), *small.model.buffers()):
            numbers = tensor.detach().reshape(-1)
            for place in range(len(numbers)):
                kept = numbers[place].clone()
                numbers[place : place + 1].view(torch.uint8)[0] ^= 1
                assert digest_of(small) != before
                numbers[place] = kept
                assert digest_of(small) == before


def test_a_name_and_a_shape_count_too(small):
    before = digest_of(small)
    small.model.scale = small.model.scale.reshape(1)
    assert digest_of(small) != before


def test_a_tensor_is_read_by_chunks_and_their_size_changes_nothing(tiny, monkeypatch):
    before = digest_of(tiny)
    monkeypatch.setattr(module, "CHUNK_BYTES", 1000)
    chunks = list(weight_chunks(tiny))
    assert max(map(len, chunks)) == 1000
    assert digest_of(tiny) == before


def test_a_tiny_networks_weights_are_all_there_once_and_reading_it_changes_none(tiny):
    before = digest_of(tiny)
    read = sum(len(chunk) for chunk in weight_chunks(tiny) if isinstance(chunk, memoryview))
    assert read == tiny.info.weights_bytes + sum(buffer.nbytes for buffer in tiny.model.buffers())
    tiny.prefill([1, 2, 3])
    assert digest_of(tiny) == before
    weight = tiny.model.model.layers[1].mlp.up_proj.weight
    with torch.no_grad():
        kept = weight[3, 2].clone()
        weight[3, 2] = torch.nextafter(kept, torch.tensor(torch.inf))
        assert digest_of(tiny) != before
        weight[3, 2] = kept
    assert digest_of(tiny) == before
