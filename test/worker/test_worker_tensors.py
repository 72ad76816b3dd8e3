"""The seam to tensors, with a stand-in for torch that keeps its arrays in sight."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from seq_harness.contract.errors import TransportError
from seq_harness.contract.own_io import Tensors
from seq_harness.worker.tensors import import_torch, TensorSeam


class Tensor:
    """As much of a tensor as the seam uses."""

    def __init__(self, array: Any, device: str = 'cpu') -> None:
        self.array = array
        self.device = device
        self.dtype = array.dtype

    def to(self, device: str) -> Tensor:
        return Tensor(self.array, device)

    def unsqueeze(self, axis: int) -> Tensor:
        return Tensor(np.expand_dims(self.array, axis), self.device)

    def detach(self) -> Tensor:
        return self

    def cpu(self) -> Tensor:
        return Tensor(self.array)

    def numpy(self) -> Any:
        return self.array


TORCH = SimpleNamespace(
    Tensor=Tensor,
    from_numpy=Tensor,
    bfloat16='bfloat16',
    device=lambda name: name,
    cuda=SimpleNamespace(is_available=lambda: False),
)


def test_arrays_become_tensors_on_the_device_with_a_batch_dimension() -> None:
    seam = TensorSeam(Tensors(), TORCH, 'cuda:1')
    inputs = {'steps': [0], 'observations': [{'state': np.ones(3, np.float64), 'prompt': 'go'}]}
    into = seam.into(inputs)
    state = into['observations'][0]['state']
    assert (state.array.shape, state.array.dtype, state.device) == ((1, 3), np.float32, 'cuda:1')
    assert into['observations'][0]['prompt'] == 'go'
    assert into['steps'] == [0]


def test_without_batch_shapes_are_kept_and_the_memory_is_writable() -> None:
    array = np.ones((2, 2), '>i2')
    array.flags.writeable = False
    tensor = TensorSeam(Tensors(batch=False), TORCH, None).into(array)
    assert tensor.array.shape == (2, 2)
    assert tensor.array.dtype == np.dtype('=i2')
    assert tensor.array.flags.writeable
    assert tensor.device == 'cpu'


def test_tensors_of_an_answer_go_back_as_arrays() -> None:
    out = TensorSeam(Tensors(), TORCH, None).out_of({'actions': Tensor(np.zeros((2, 3)))})
    assert isinstance(out['actions'], np.ndarray)


def test_a_missing_torch_is_told_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        raise ImportError(name)

    monkeypatch.setattr('seq_harness.worker.tensors.importlib.import_module', missing)
    with pytest.raises(TransportError) as told:
        import_torch()
    assert told.value.code.value == 'dependency_missing'
