"""Storage types: rounding to them, and how HDF5 holds them."""

from __future__ import annotations

import h5py
import numpy as np
import torch

TYPES = {"float16": torch.float16, "bfloat16": torch.bfloat16, "float32": torch.float32}
CHUNK_BYTES = 1 << 20  # the default chunk cache of HDF5


def rounded(x: torch.Tensor, name: str) -> torch.Tensor:
    """x in the storage type, on its device."""
    return x.to(TYPES[name])


def item_size(name: str) -> int:
    return TYPES[name].itemsize


def bfloat16_type() -> h5py.h5t.TypeID:
    """HDF5's own 16-bit float: sign bit 15, exponent 8 bits at 7, mantissa 7 bits at 0, bias 127."""
    kind = h5py.h5t.IEEE_F32LE.copy()
    kind.set_fields(15, 7, 8, 0, 7)
    kind.set_size(2)
    kind.set_ebias(127)
    return kind


def chunk_shape(shape, size: int) -> tuple:
    """(1, rows, width) of at most 1024 rows and 1 MiB."""
    rows = max(1, min(1024, CHUNK_BYTES // (shape[2] * size)))
    return (1, min(shape[1], rows), shape[2])


def write_tensor(group: h5py.Group, name: str, x: torch.Tensor):
    """A float16, bfloat16 or float32 tensor [heads, tokens, width], chunked, with checksums."""
    x = x.detach().cpu().contiguous()
    chunks = chunk_shape(x.shape, x.element_size())
    if x.dtype != torch.bfloat16:
        group.create_dataset(name, data=x.numpy(), chunks=chunks, fletcher32=True)
        return
    kind = bfloat16_type()
    properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    properties.set_chunk(chunks)
    properties.set_fletcher32()
    dataset = h5py.h5d.create(group.id, name.encode(), kind, h5py.h5s.create_simple(tuple(x.shape)), properties)
    bits = np.ascontiguousarray(x.view(torch.int16).numpy().view(np.uint16))
    dataset.write(h5py.h5s.ALL, h5py.h5s.ALL, bits, mtype=kind)
