"""Arrays as the C library takes them: an address, an element type, a number of elements.

NumPy arrays and torch tensors are used where they lie. Neither NumPy nor torch is imported before an
array of theirs is used.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

from leeway import errors
from leeway._c import ffi, lib

DTYPES = {
    "float32": lib.LEEWAY_FLOAT32,
    "float64": lib.LEEWAY_FLOAT64,
    "float16": lib.LEEWAY_FLOAT16,
    "bfloat16": lib.LEEWAY_BFLOAT16,
    "int32": lib.LEEWAY_INT32,
    "int64": lib.LEEWAY_INT64,
}
NAMES = {number: name for name, number in DTYPES.items()}

_by_object: dict[Any, int] = {}  # NumPy's and torch's dtype objects that were seen


class Data(NamedTuple):
    """Memory of an array. `owner` keeps it alive."""

    address: Any
    dtype: int
    elements: int
    shape: tuple[int, ...]
    owner: Any


def dtype_number(dtype: Any) -> int:
    """The number of a dtype: of NumPy or torch, or its name. TypeError names those there are."""
    number = _by_object.get(dtype)
    if number is not None:
        return number
    name = dtype if isinstance(dtype, str) else str(getattr(dtype, "name", None) or dtype)
    name = name.removeprefix("torch.")
    if name not in DTYPES and isinstance(dtype, type):
        name = numpy().dtype(dtype).name
    if name not in DTYPES or not getattr(dtype, "isnative", True):
        raise TypeError(
            f"dtype {dtype!s} is none of a table's: {', '.join(DTYPES)} in this machine's byte order"
        )
    _by_object[dtype] = DTYPES[name]
    return int(DTYPES[name])


def numpy() -> Any:
    import numpy

    return numpy


def is_torch(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def _refuse_mask(array: Any) -> None:
    np = numpy()
    if type(array) is not np.ndarray and isinstance(array, np.ma.MaskedArray):
        raise TypeError("a masked array would go without its mask: pass array.filled(0) or array.data")


def _of_numpy(array: Any, writable: bool) -> Data:
    _refuse_mask(array)
    number = _by_object.get(array.dtype)
    if number is None:
        number = dtype_number(array.dtype)
    try:
        address = ffi.from_buffer(array, require_writable=writable)
    except (
        BufferError,
        ValueError,
    ):  # of an element type that buffers do not know, or not in one piece
        if not array.flags.c_contiguous:
            raise ValueError(
                "the array is not contiguous (C order): pass numpy.ascontiguousarray(array), and mind that this copies"
            ) from None
        if writable and not array.flags.writeable:
            raise ValueError("the array is read-only, and a pull writes into it") from None
        address = ffi.from_buffer(
            array.view("uint16" if array.dtype.itemsize == 2 else "uint8"),
            require_writable=writable,
        )
    return Data(address, number, array.size, array.shape, array)


def _of_torch(tensor: Any, writable: bool) -> Data:
    if tensor.device.type != "cpu":
        raise TypeError(f"the tensor is on {tensor.device}: copy it by leeway.torch.to_host or .cpu()")
    if tensor.layout is not sys.modules["torch"].strided:
        raise TypeError(f"the tensor is {tensor.layout}: pass tensor.to_dense()")
    if tensor.is_neg():
        raise ValueError("the tensor is negated where it is read: pass tensor.resolve_neg()")
    if not tensor.is_contiguous():
        raise ValueError("the tensor is not contiguous: pass tensor.contiguous(), and mind that this copies")
    address = ffi.cast("void *", tensor.data_ptr())
    # A tensor of its own keeps the memory where tensor.data is replaced while an operation is under way.
    return Data(address, dtype_number(tensor.dtype), tensor.numel(), tuple(tensor.shape), tensor.detach())


def data_of(value: Any, dtype: int, writable: bool = False) -> Data:
    """The memory of a NumPy array, of a torch tensor on the CPU, or of another array by DLPack.

    A number or a list becomes an array of `dtype`; where it would be written to, that is a TypeError.
    """
    np = sys.modules.get("numpy")
    if np is not None and isinstance(value, np.ndarray):
        return _of_numpy(value, writable)
    if is_torch(value):
        return _of_torch(value, writable)
    np = numpy()
    if isinstance(value, np.ndarray):
        return _of_numpy(value, writable)
    if hasattr(value, "__dlpack__"):
        return _of_numpy(np.from_dlpack(value), writable)
    if writable:
        raise TypeError(
            f"a pull writes into NumPy arrays and torch tensors, and not into {type(value).__name__}"
        )
    return _of_numpy(_converted(value, dtype), writable)


def _converted(value: Any, dtype: int) -> Any:
    """A new array of numbers that have no dtype of a table yet. ValueError: an integer type cannot hold one."""
    np = numpy()
    given = np.asarray(value)
    if given.dtype.kind not in "fiu":
        raise TypeError(f"{type(value).__name__} holds no numbers")
    with np.errstate(invalid="ignore"):
        array = np.ascontiguousarray(given, dtype=_numpy_dtype(dtype))
    if array.dtype.kind == "i" and not (array == given).all():
        raise ValueError(f"{type(value).__name__} holds numbers that are no {array.dtype}")
    return array


def joined(rows: Sequence[Any], dtype: int) -> tuple[Any, list[int]]:
    """Rows of one dimension in one new array, of torch where a row is a tensor, and their sizes."""
    np = numpy()
    if any(map(is_torch, rows)):
        torch = sys.modules["torch"]
        parts = [torch.as_tensor(row).detach() for row in rows]
        join = torch.cat
    else:
        parts = [row if isinstance(row, np.ndarray) else _converted(row, dtype) for row in rows]
        join = np.concatenate
    if any(part.ndim > 1 for part in parts):
        raise errors.InvalidArgument("a row has more than one dimension")
    parts = [part.reshape(-1) for part in parts]
    return join(parts) if parts else empty((0,), dtype), [len(part) for part in parts]


def _numpy_dtype(number: int) -> Any:
    if NAMES[number] == "bfloat16":
        raise TypeError("NumPy has no bfloat16: pass torch tensors, or arrays of ml_dtypes.bfloat16")
    return numpy().dtype(NAMES[number])


def keys_of(value: Any) -> Data:
    """Keys as uint64: int64 ones are used where they lie, others are copied. ValueError: below 0."""
    np = numpy()
    if is_torch(value):
        value = value.detach().cpu().numpy()
    array = value if isinstance(value, np.ndarray) else np.asarray(value)
    _refuse_mask(array)
    if array.size == 0:
        array = array.astype(np.uint64)
    elif (
        array is not value and array.dtype.kind == "f"
    ):  # NumPy's choice for a list of small and large integers
        exact = np.asarray(value, dtype=object)
        if all(isinstance(key, int) for key in exact.flat):
            if exact.min() < 0:
                raise ValueError(f"key {exact.min()} is below 0")
            array = exact.astype(np.uint64)
    if array.dtype.kind not in "iu":
        raise TypeError(f"keys are integers, and not {array.dtype}")
    if array.dtype.kind == "i":
        if array.min() < 0:
            raise ValueError(f"key {array.min()} is below 0")
        array = (
            array.view(np.uint64)
            if array.dtype == np.int64 and array.flags.c_contiguous
            else array.astype(np.uint64)
        )
    array = np.ascontiguousarray(array, dtype=np.uint64)
    return Data(ffi.from_buffer("uint64_t[]", array), 0, array.size, array.shape, array)


def empty(shape: tuple[int, ...], dtype: int, like: Any = None) -> Any:
    """A new array of that shape: a torch tensor where `like` is one, or for bfloat16; else NumPy's."""
    if is_torch(like) or NAMES[dtype] == "bfloat16":
        import torch

        return torch.empty(shape, dtype=getattr(torch, NAMES[dtype]))
    return numpy().empty(shape, dtype=NAMES[dtype])
