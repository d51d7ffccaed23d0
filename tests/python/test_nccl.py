"""reshard.nccl with ranks as threads of this process, each with a device, on the doubles of CUDA and NCCL."""

import ctypes
import sys
import threading
import unittest

import numpy

import reshard

RANKS = 4


class UniqueId(ctypes.Structure):
    _fields_ = [("internal", ctypes.c_char * 128)]


def library(name):
    """The library that the extension module has loaded, wherever the loader found it."""
    with open("/proc/self/maps", encoding="utf-8") as maps:
        paths = {line.rstrip("\n").split(maxsplit=5)[-1] for line in maps if f"/lib{name}.so" in line}
    return ctypes.CDLL(min(paths))


def address_of(array):
    """The address of an array with DLPack."""
    capsule = array.__dlpack__()
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    return ctypes.c_void_p.from_address(pointer(capsule, b"dltensor")).value


class Devices(unittest.TestCase):
    def setUp(self):
        self.cuda, self.nccl = library("cudart"), library("nccl")
        self.cuda.cudaMemcpy.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
        self.nccl.ncclCommInitRank.argtypes = (ctypes.POINTER(ctypes.c_void_p), ctypes.c_int, UniqueId, ctypes.c_int)
        self.nccl.ncclCommDestroy.argtypes = (ctypes.c_void_p,)

    def on_every_rank(self, body):
        unique, failures, meeting = UniqueId(), [], threading.Barrier(RANKS)
        self.meeting = meeting
        self.assertEqual(self.nccl.ncclGetUniqueId(ctypes.byref(unique)), 0)

        def one(rank):
            try:
                communicator = ctypes.c_void_p()
                self.assertEqual(self.cuda.cudaSetDevice(rank), 0)
                self.assertEqual(self.nccl.ncclCommInitRank(ctypes.byref(communicator), RANKS, unique, rank), 0)
                body(communicator.value, rank)
                meeting.wait(60)
                reshard.nccl.clear(communicator.value)
                meeting.wait(60)
                self.assertEqual(self.nccl.ncclCommDestroy(communicator), 0)
            except BaseException as failure:
                failures.append(failure)
                meeting.abort()

        threads = [threading.Thread(target=one, args=(rank,)) for rank in range(RANKS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if failures:
            raise failures[0]

    def test_arrays_on_devices(self):
        def body(communicator, rank):
            for dtype, source, target in (("f32", "9@x,10@y", "9,10@(y,x)"), ("bf16", "8@x,4", "8@(x,y),4"),
                                          ("c128", "7", "7@x")):
                source, target = (reshard.parse_layout("x=2,y=2", f"{dtype}[{end}]") for end in (source, target))
                count = int(numpy.prod(source.shape))
                array = numpy.arange(count).reshape(source.shape).astype(source.numpy_dtype)
                tile = reshard.split(array, source)[rank]
                there = reshard.nccl.allocate(communicator, source)
                self.assertEqual(self.cuda.cudaMemcpy(address_of(there), tile.ctypes.data, tile.nbytes, 1), 0)
                for out in (None, reshard.nccl.allocate(communicator, target)):
                    moved = reshard.nccl.redistribute(communicator, there, source, target, out)
                    back, wanted = reshard.empty_tile(target, rank), reshard.split(array, target)[rank]
                    self.assertEqual(self.cuda.cudaMemcpy(back.ctypes.data, address_of(moved), back.nbytes, 2), 0)
                    self.assertEqual(back.tobytes(), wanted.tobytes())

        self.on_every_rank(body)

    def test_the_array_changes_on_the_way(self):
        """Cast, transposed and padded, alone and together, beside numpy's own values. The second call is a kept one."""
        rng = numpy.random.default_rng(7)
        whole = (rng.standard_normal((6, 10)) * 100).astype("f4")
        rows = (({"cast": True}, "bf16[6,10@x]"), ({"permute": (1, 0)}, "f32[10@y,6]"), ({"fill": -1.5}, "f32[8,12@(x,y)]"),
                ({"cast": True, "permute": (1, 0), "fill": 7}, "f16[12@x,8@y]"), ({"cast": True}, "f64[6@y,10]"))

        def body(communicator, rank):
            for changes, target in rows:
                source, target = (reshard.parse_layout("x=2,y=2", end) for end in ("f32[6@x,10@y]", target))
                wanted = numpy.full(target.shape, changes.get("fill", 0), target.numpy_dtype)
                seen = whole.transpose(changes.get("permute", (0, 1))).astype(target.numpy_dtype)
                wanted[:seen.shape[0], :seen.shape[1]] = seen
                tile = reshard.split(whole, source)[rank]
                there = reshard.nccl.allocate(communicator, source)
                self.assertEqual(self.cuda.cudaMemcpy(address_of(there), tile.ctypes.data, tile.nbytes, 1), 0)
                for _ in range(2):
                    moved = reshard.nccl.redistribute(communicator, there, source, target, **changes)
                    back, own = reshard.empty_tile(target, rank), reshard.split(wanted, target)[rank]
                    self.assertEqual(self.cuda.cudaMemcpy(back.ctypes.data, address_of(moved), back.nbytes, 2), 0)
                    self.assertEqual(back.tobytes(), own.tobytes(), (changes, target))
            with self.assertRaisesRegex(reshard.InputError, "element types differ"):
                reshard.nccl.redistribute(communicator, there, source, reshard.parse_layout("x=2,y=2", "bf16[6@x,10@y]"))

        self.on_every_rank(body)

    def test_what_is_wrong_is_named(self):
        layout = reshard.parse_layout("x=2,y=2", "f32[8@x]")

        def body(communicator, rank):
            there = reshard.nccl.allocate(communicator, layout)
            with self.assertRaisesRegex(reshard.UnsupportedError, "`array` lies in the host's memory"):
                reshard.nccl.redistribute(communicator, numpy.zeros(4, "f4"), layout, layout, there)
            other = reshard.parse_layout("x=2,y=2", "f32[16@x]")
            with self.assertRaisesRegex(reshard.InputError, "holds a tile of shape \\(8,\\), `array` has shape \\(4,\\)"):
                reshard.nccl.redistribute(communicator, there, other, other)
            with self.assertRaisesRegex(reshard.UnsupportedError, "lies in a device's memory"):
                reshard.local(1).redistribute([there], reshard.parse_layout("", "f32[4]"), reshard.parse_layout("", "f32[4]"))

        self.on_every_rank(body)

    def test_a_mistake_of_one_rank_is_an_error_on_all(self):
        """Each kind of wrong argument on one rank. The others get its words, and then the ranks are in step."""
        source, target = (reshard.parse_layout("x=2,y=2", f"f32[{end}]") for end in ("8@(x,y),8", "8,8@(y,x)"))
        other = reshard.parse_layout("x=2,y=2", "f32[16@x]")
        words = {}

        def body(communicator, rank):
            here, there = (reshard.nccl.allocate(communicator, end) for end in (source, target))
            right = {"communicator": communicator, "array": here, "source": source, "target": target, "out": there}
            rows = [({"array": numpy.zeros(here.shape if hasattr(here, "shape") else 4, "f4")}, reshard.UnsupportedError),
                    ({"array": [1]}, TypeError), ({"array": None}, TypeError),
                    ({"source": None}, TypeError), ({"source": other}, reshard.InputError),
                    ({"target": None, "out": None}, (TypeError, AttributeError)), ({"target": "f32[8]"}, TypeError),
                    ({"out": here}, reshard.InputError), ({"out": 3}, TypeError),
                    ({"out": numpy.zeros(target.tile_shape(rank), "f4")}, reshard.UnsupportedError),
                    ({"stream": "legacy"}, TypeError), ({"streams": 0}, TypeError)]
            for number, (wrong, kinds) in enumerate(rows):
                culprit = (RANKS - 1) * (number % 2)
                try:
                    reshard.nccl.redistribute(**{**right, **(wrong if rank == culprit else {})})
                    caught = None
                except Exception as error:
                    caught = error.with_traceback(None)  # the traceback would keep the arrays longer than their communicator
                if rank == culprit:
                    words[number] = str(caught)
                assert isinstance(caught, kinds if rank == culprit else reshard.Error), (rank, number, caught)
                self.meeting.wait(60)
                assert rank == culprit or f"rank {culprit}" in str(caught), caught
                assert words[number][:60] in str(caught), (words[number], caught)
                assert reshard.nccl.redistribute(**right) is there
            self.meeting.wait(60)

        self.on_every_rank(body)

    def test_the_first_call_on_a_communicator(self):
        layout = reshard.parse_layout("x=2,y=2", "f32[8@x]")

        def body(communicator, rank):
            try:
                array = reshard.nccl.allocate(communicator, "f32[8]" if rank == 0 else layout)
                assert rank > 0, array
            except TypeError:
                assert rank == 0
            array = reshard.nccl.allocate(communicator, layout)
            reshard.nccl.redistribute(communicator, array, layout, layout)

        self.on_every_rank(body)

    def test_a_communicator_that_is_none(self):
        layout = reshard.parse_layout("x=2,y=2", "f32[8@x]")
        with self.assertRaises(TypeError):
            reshard.nccl.redistribute("communicator", None, layout, layout)
        with self.assertRaises(reshard.BackendError):
            reshard.nccl.redistribute(0, None, layout, layout)


if __name__ == "__main__":
    if not reshard.nccl.available() or not hasattr(library("nccl"), "nccl_double_calls"):
        print("skipped: no NCCL in this build, or no doubles of it")
        sys.exit(77)
    unittest.main(verbosity=1)
