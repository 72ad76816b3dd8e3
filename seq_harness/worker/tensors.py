"""Arrays to a policy's tensors and back, where it declares that it takes tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
import importlib
from typing import Any

import numpy as np
from seq_harness.contract.errors import ErrorCode, TransportError
from seq_harness.contract.own_io import Tensors


def import_torch() -> Any:
    """
    Import torch.

    Raises
    ------
    TransportError
        It is not installed (`dependency_missing`).

    """
    try:
        return importlib.import_module('torch')
    except ImportError as error:
        raise TransportError(
            ErrorCode.DEPENDENCY_MISSING,
            f'the policy declares tensors, and torch cannot be imported: {error}',
            hint="install torch in the worker's environment, or leave tensors out",
        ) from error


class TensorSeam:
    """The last step before the policy's code, and the first one after it."""

    def __init__(self, declared: Tensors, torch: Any, device: Any) -> None:
        self._batch = declared.batch
        self._torch = torch
        self._device = device if device is not None else _default_device(torch)

    def into(self, inputs: Any) -> Any:
        """Return `inputs` with every array of numbers as a tensor on the device."""
        return _mapped(inputs, self._tensor)

    def out_of(self, outputs: Any) -> Any:
        """Return `outputs` with every tensor as an array."""
        return _mapped(outputs, self._array)

    def _tensor(self, value: Any) -> Any:
        if not isinstance(value, np.ndarray) or value.dtype.kind not in 'biuf':
            return value
        dtype = np.dtype(np.float32) if value.dtype == np.float64 else value.dtype
        array = np.array(value, dtype=dtype.newbyteorder('='))
        tensor = self._torch.from_numpy(array).to(self._device)
        return tensor.unsqueeze(0) if self._batch else tensor

    def _array(self, value: Any) -> Any:
        if not isinstance(value, self._torch.Tensor):
            return value
        array = value.detach().cpu()
        if array.dtype == self._torch.bfloat16:
            array = array.float()
        return array.numpy()


def _default_device(torch: Any) -> Any:
    return torch.device('cuda' if torch.cuda.is_available() else 'cpu')


def _mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    if isinstance(value, Mapping):
        return {key: _mapped(item, change) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_mapped(item, change) for item in value]
    return change(value)
