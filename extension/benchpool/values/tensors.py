"""Tensors of torch: in safetensors if installed, else as NumPy arrays.

Tensors with the same memory are restored as one. GPU tensors are copied to CPU memory for writing.
For a model or an optimizer only the state is written: its code is in the cells.
"""

from __future__ import annotations

from typing import Any

from benchpool.values.libraries import library


class TensorFile:
    """Collects the tensors of one name, and writes them into one file."""

    def __init__(self, writer: Any) -> None:
        self._writer = writer
        self._waiting: dict[str, Any] = {}
        self._nodes: list[dict[str, Any]] = []
        self._known: dict[Any, Any] = {}
        self._kept: list[Any] = []

    def add(self, tensor: Any) -> dict[str, Any]:
        """Return the node with the location of a tensor's data."""
        storage = tensor.untyped_storage().data_ptr()
        place = (storage, tensor.storage_offset(), tuple(tensor.shape), tensor.stride())
        key = (*place, str(tensor.dtype), str(tensor.device))
        if tensor.numel() and key in self._known:
            return dict(self._known[key])
        self._writer.count(tensor.numel() * tensor.element_size())
        plain = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous()
        node = self._put(plain)
        self._kept.append(tensor)  # otherwise its memory may be reused
        self._known[key] = node
        return dict(node)

    def _put(self, plain: Any) -> dict[str, Any]:
        if not _in_safetensors(plain):
            path = self._writer.file("npy")
            numpy = library("numpy")
            shape, dtype = list(plain.shape), str(plain.dtype).removeprefix("torch.")
            octets = plain.reshape(-1).view(library("torch").uint8)
            numpy.save(path, octets.numpy(), allow_pickle=False)
            return {"file": path.name, "dtype": dtype, "shape": shape}
        if plain.untyped_storage().nbytes() != plain.numel() * plain.element_size():
            plain = plain.clone()  # safetensors cannot write views
        if not self._waiting:
            self._file = self._writer.file("safetensors")
        key = f"t{len(self._waiting)}"
        self._waiting[key] = plain
        return {"file": self._file.name, "key": key}

    def flush(self) -> None:
        """Write the collected tensors."""
        if self._waiting:
            from safetensors.torch import save_file

            save_file(self._waiting, str(self._file))
            self._waiting = {}

    def forget(self) -> None:
        """Drop the collected tensors, and entries of files that were removed."""
        self._waiting = {}
        self._known = {
            key: node
            for key, node in self._known.items()
            if (self._writer.folder / node["file"]).exists()
        }


def _in_safetensors(plain: Any) -> bool:
    if plain.is_complex():
        return False
    try:
        import safetensors.torch  # noqa: F401
    except ImportError:
        return False
    return True


def _is_tensor(value: Any, _writer: Any) -> bool:
    torch = library("torch")
    if torch is None or type(value) not in (torch.Tensor, torch.nn.Parameter):
        return False
    whole = value.layout is torch.strided and value.device.type in ("cpu", "cuda", "mps", "xpu")
    return whole and not value.is_quantized and not getattr(value, "is_nested", False)


def _write_tensor(value: Any, writer: Any) -> dict[str, Any]:
    torch = library("torch")
    node = writer.tensors.add(value)
    if isinstance(value, torch.nn.Parameter):
        node["parameter"] = True
    if value.requires_grad:
        node["grad"] = True
    if value.device.type != "cpu":
        node["device"] = str(value.device)
    return dict(node)


def _read_tensor(node: dict[str, Any], reader: Any) -> Any:
    import torch

    plain = reader.tensor(node)
    device = reader.device or node.get("device", "cpu")
    if not device.startswith("cuda") or torch.cuda.is_available():
        plain = plain.to(device)
    grad = bool(node.get("grad"))
    if node.get("parameter"):
        return torch.nn.Parameter(plain, requires_grad=grad)
    return plain.requires_grad_() if grad else plain


def read_numbers(node: dict[str, Any], path: Any) -> Any:
    """Return a tensor in CPU memory."""
    import torch

    if "key" in node:
        from safetensors import safe_open

        with safe_open(str(path), framework="pt") as file:
            return file.get_tensor(node["key"])
    import numpy

    octets, dtype = numpy.load(path, allow_pickle=False), getattr(torch, node["dtype"])
    if not octets.size:
        return torch.empty(node["shape"], dtype=dtype)
    return torch.from_numpy(octets).view(dtype).reshape(node["shape"])


def _is_state(value: Any, writer: Any) -> bool:
    torch = library("torch")
    if torch is None or not writer.states:
        return False
    return isinstance(value, (torch.nn.Module, torch.optim.Optimizer))


def _write_state(value: Any, writer: Any) -> dict[str, Any]:
    return {"of": type(value).__qualname__, "state": writer.encode(value.state_dict())}


def _is_word(value: Any, _writer: Any) -> bool:
    torch = library("torch")
    return torch is not None and type(value) in (torch.dtype, torch.device, torch.Size)


def _write_word(value: Any, _writer: Any) -> dict[str, Any]:
    content = list(value) if isinstance(value, tuple) else str(value)
    return {"class": type(value).__name__, "value": content}


def _read_word(node: dict[str, Any], _reader: Any) -> Any:
    import torch

    if node["class"] == "dtype":
        found = getattr(torch, node["value"].removeprefix("torch."))
        if not isinstance(found, torch.dtype):
            raise ValueError(node["value"])
        return found
    return (torch.Size if node["class"] == "Size" else torch.device)(node["value"])


TENSOR_FORMATS = (
    ("tensor", _is_tensor, _write_tensor, _read_tensor),
    ("state", _is_state, _write_state, lambda node, reader: reader.value(node["state"])),
    ("torch-word", _is_word, _write_word, _read_word),
)
"""Fields of ``formats.Format``."""
