"""A separate .npy reader and writer, with struct and index arithmetic. It does not use the library under test.

Elements are kept as little-endian bytes, so that every bit is compared, even in a NaN.
"""

import ast
import itertools
import struct


def item_bytes(descr):
    return int(descr[2:])


def part_bytes(descr):
    """The bytes that byte order swaps: half of a complex number, nothing in raw bytes."""
    if descr[1] == "V":
        return 1
    return item_bytes(descr) // 2 if descr[1] == "c" else item_bytes(descr)


def swapped(element, descr):
    width = part_bytes(descr)
    return b"".join(element[i : i + width][::-1] for i in range(0, len(element), width))


def indices(shape, fortran):
    """All indices of an array, in memory order."""
    if fortran:
        for index in itertools.product(*(range(n) for n in reversed(shape))):
            yield tuple(reversed(index))
    else:
        yield from itertools.product(*(range(n) for n in shape))


def write(path, descr, shape, elements, fortran=False, version=(1, 0)):
    """Writes an array. `elements`: index -> little-endian bytes."""
    text = "{'descr': %r, 'fortran_order': %r, 'shape': %r, }" % (descr, fortran, tuple(shape))
    length_format = "<H" if version[0] == 1 else "<I"
    before = 8 + struct.calcsize(length_format)
    text += " " * (-(before + len(text) + 1) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY" + bytes(version) + struct.pack(length_format, len(text)) + text.encode("utf-8"))
        for index in indices(shape, fortran):
            element = elements[index]
            file.write(swapped(element, descr) if descr[0] == ">" else element)


class Array:
    def __init__(self, descr, shape, fortran, elements):
        self.descr = descr
        self.shape = shape
        self.fortran = fortran
        self.elements = elements


def read(path):
    with open(path, "rb") as file:
        whole = file.read()
    assert whole[:6] == b"\x93NUMPY", path
    length_format = "<H" if whole[6] == 1 else "<I"
    begin = 8 + struct.calcsize(length_format)
    (length,) = struct.unpack(length_format, whole[8:begin])
    header = ast.literal_eval(whole[begin : begin + length].decode("utf-8"))
    assert (begin + length) % 64 == 0, "numpy aligns the first element"
    descr, shape, fortran = header["descr"], header["shape"], header["fortran_order"]
    size = item_bytes(descr)
    elements = {}
    at = begin + length
    for index in indices(shape, fortran):
        element = whole[at : at + size]
        assert len(element) == size, "the file is too short"
        elements[index] = swapped(element, descr) if descr[0] == ">" else element
        at += size
    assert at == len(whole), "the file is too long"
    return Array(descr, shape, fortran, elements)
