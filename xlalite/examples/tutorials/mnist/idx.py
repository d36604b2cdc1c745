"""MNIST's file format: a magic number, big-endian sizes, then one byte for each pixel or label, perhaps gzipped."""

import gzip
import math
import struct
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from xlalite.hlo.errors import DataError

IMAGES_MAGIC = 2051
LABELS_MAGIC = 2049


class MissingDataError(DataError, FileNotFoundError):
    """Files of a data set are not where they were looked for."""


@dataclass(frozen=True, slots=True)
class Split:
    """Part of a data set: images `[n, rows, columns]` of bytes, and labels `[n]` of bytes."""

    images: NDArray[np.uint8]
    labels: NDArray[np.uint8]


def read_split(directory: Path, prefix: str) -> Split:
    """Reads `<prefix>-images-idx3-ubyte` and `<prefix>-labels-idx1-ubyte`, with or without `.gz`.

    Raises:
        DataError: A file is damaged or not of the format, or the two files do not belong together.
    """
    images_path = find(directory, f"{prefix}-images-idx3-ubyte")
    labels_path = find(directory, f"{prefix}-labels-idx1-ubyte")
    if images_path is None or labels_path is None:
        raise MissingDataError(f"{directory}: {prefix}-images-idx3-ubyte or its labels are missing")
    images = read_array(images_path, IMAGES_MAGIC, rank=3)
    labels = read_array(labels_path, LABELS_MAGIC, rank=1)
    if len(images) != len(labels):
        raise DataError(f"{images_path.name} has {len(images)} images, but {labels_path.name} has {len(labels)} labels")
    return Split(images, labels)


def find(directory: Path, name: str) -> Path | None:
    """The file of that name, gzipped or not; None when there is neither."""
    for candidate in (directory / f"{name}.gz", directory / name):
        if candidate.is_file():
            return candidate
    return None


def read_array(path: Path, magic: int, rank: int) -> NDArray[np.uint8]:
    """The array in an IDX file.

    Raises:
        DataError: The magic number is another, or the file is shorter or longer than its header says.
    """
    content = _content(path)
    header = struct.Struct(f">{1 + rank}I")
    if len(content) < header.size:
        raise DataError(f"{path}: expected a header of {header.size} bytes, found {len(content)} bytes in all")
    found, *dims = header.unpack_from(content)
    if found != magic:
        raise DataError(f"{path}: invalid magic number {found}, expected {magic}")
    size = math.prod(dims)
    if len(content) - header.size != size:
        shape = " x ".join(str(dim) for dim in dims)
        raise DataError(f"{path}: the header promises {shape} bytes, found {len(content) - header.size}")
    return np.frombuffer(content, np.uint8, size, header.size).reshape(dims)


def _content(path: Path) -> bytes:
    content = path.read_bytes()
    if path.suffix != ".gz":
        return content
    try:
        return gzip.decompress(content)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise DataError(f"{path}: not a complete gzip file ({error})") from error
