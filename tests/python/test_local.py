"""Arrays of every kind move between ranks of this process, and are compared with slices of the whole array."""

import ctypes
import random
import threading
import time
import types
import unittest

import ml_dtypes
import numpy

import reshard

ENDS = (("x=2,y=3", "13@x,7", "13@y,7"), ("x=2,y=3", "13@x,7@y", "13,7@(y,x)"), ("x=6", "12@x/2,5", "12,5@x"),
        ("x=2,y=3", "6,4", "6@(x,y),4"), ("x=4", "0@x,3", "0,3@x"), ("x=3", "", ""), ("x=3", "5@x[3,0,2]", "5"))
DTYPES = ("bool", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f16", "f32", "f64", "c64", "c128", "bf16",
          "f8_e4m3fn", "f8_e5m2")


class HostTensor:
    """A foreign array with DLPack, not numpy's. `device` is DLPack's device number, `version` its version."""

    def __init__(self, array, device=1, version=1):
        self.array, self.device, self.version = array, device, version

    def __dlpack__(self, max_version=(0, 8), **_):
        new = min(self.version, max_version[0]) > 0
        capsule = self.array.__dlpack__(max_version=max_version if new else (0, 8))
        pointer = ctypes.pythonapi.PyCapsule_GetPointer
        pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
        tensor = pointer(capsule, b"dltensor_versioned") + 32 if new else pointer(capsule, b"dltensor")
        kind = ctypes.c_int32.from_address(tensor + ctypes.sizeof(ctypes.c_void_p))
        kind.value = self.device  # a field of struct DLTensor, after the address of the data
        return capsule

    def __dlpack_device__(self):
        return self.device, 0


def same_bytes(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def whole(layout):
    count = int(numpy.prod(layout.shape))
    return (numpy.arange(count) % 120).reshape(layout.shape).astype(layout.numpy_dtype)


class Redistribute(unittest.TestCase):
    def moved(self, ranks, array, source, target, change=lambda tile: tile, out=None):
        tiles = [change(tile) for tile in reshard.split(array, source)]
        tiles += [reshard.empty_tile(source, rank) for rank in range(len(tiles), ranks.size)]
        found = ranks.redistribute(tiles, source, target, out)
        wanted = reshard.split(array, target)
        for rank, tile in enumerate(wanted):
            self.assertTrue(same_bytes(numpy.asarray(found[rank]), tile), (source, target, rank))
        if source.summands == 1:
            self.assertTrue(same_bytes(reshard.join(found, target), array))

    def test_dtypes_and_shapes(self):
        for mesh, source, target in ENDS:
            ranks = reshard.local(reshard.parse_mesh(mesh).size)
            for dtype in DTYPES:
                ends = [reshard.parse_layout(mesh, f"{dtype}[{end}]") for end in (source, target)]
                self.moved(ranks, whole(ends[0]), *ends)

    def test_orders_and_strides(self):
        mesh, ranks = reshard.parse_mesh("x=2,y=2"), reshard.local(4)
        spread = lambda tile: numpy.repeat(numpy.repeat(tile, 2, 0), 3, 1)[::2, ::3]
        backwards = lambda tile: tile[::-1, ::-1].copy()[::-1, ::-1]
        for dtype in ("f32", "bf16", "c128"):
            source = reshard.parse_layout(mesh, f"{dtype}[9@x,10@y]")
            target = reshard.parse_layout(mesh, f"{dtype}[9@(y,x),10]")
            for change in (numpy.asfortranarray, spread, backwards):
                out = [change(reshard.empty_tile(target, rank)) for rank in range(4)]
                self.moved(ranks, whole(source), source, target, change, out)

    def test_whoever_speaks_dlpack(self):
        source, target = (reshard.parse_layout("x=2", f"f32[6@x,4]"), reshard.parse_layout("x=2", "f32[6,4@x]"))
        array = whole(source)
        out = [reshard.empty_tile(target, rank) for rank in range(2)]
        reshard.local(2).redistribute([HostTensor(tile) for tile in reshard.split(array, source)], source, target,
                                      [HostTensor(tile) for tile in out])
        self.assertTrue(same_bytes(reshard.join(out, target), array))

    def test_only_memory_that_says_it_is_writable_is_written(self):
        source, target = (reshard.parse_layout("x=2", "f32[6@x,4]"), reshard.parse_layout("x=2", "f32[6,4@x]"))
        ranks, tiles = reshard.local(2), reshard.split(whole(source), source)
        frozen, spare = numpy.full((6, 2), -1, "f4"), numpy.empty((6, 2), "f4")
        view = frozen.view()
        view.flags.writeable = False

        class Claims(numpy.ndarray):
            flags = types.SimpleNamespace(writeable=True)
            dtype = numpy.dtype("f4")

        claims = view.view(Claims)
        narrow = numpy.zeros((6, 2), "u1").view(Claims)
        for words, out in (("`out[0]` is read-only", view), ("`out[0]` is read-only", claims),
                           ("the elements of `out[0]` are u8", narrow), ("gives no memory", HostTensor(view, version=0)),
                           ("read-only", HostTensor(view)), ("does not say", HostTensor(frozen, version=0))):
            with self.assertRaises(reshard.InputError) as caught:
                ranks.redistribute(tiles, source, target, [out, spare])
            self.assertIn(words, str(caught.exception))
            self.assertTrue((frozen == -1).all())
        ranks.redistribute([HostTensor(tiles[0], version=0), tiles[1]], source, target, [HostTensor(frozen), spare])
        self.assertTrue(same_bytes(frozen, whole(source)[:, :2]))

    def test_arrays_of_jax_are_never_written(self):
        try:
            import jax.numpy
        except ImportError:
            self.skipTest("no JAX")
        source, target = (reshard.parse_layout("x=2", "f32[6@x,4]"), reshard.parse_layout("x=2", "f32[6,4@x]"))
        tiles = reshard.split(whole(source), source)
        array = jax.numpy.full((6, 2), -1, "float32")
        out = [array, numpy.empty((6, 2), "f4")]
        with self.assertRaisesRegex(reshard.InputError, "`out.0.` is an array of JAX, whose arrays are read-only"):
            reshard.local(2).redistribute(tiles, source, target, out)
        self.assertTrue((array == -1).all())
        moved = reshard.local(2).redistribute([jax.numpy.asarray(tile) for tile in tiles], source, target)
        self.assertTrue(same_bytes(reshard.join(moved, target), whole(source)))  # it can be read

    def test_ranks_share_no_memory_that_is_written(self):
        source, target = reshard.parse_layout("x=4", "f32[8@x,8]"), reshard.parse_layout("x=4", "f32[8,8@x]")
        ranks, tiles, memory = reshard.local(4), reshard.split(whole(source), source), numpy.zeros((8, 8), "f4")
        one = numpy.empty((8, 2), "f4")
        apart = [memory[:, 2 * rank:2 * rank + 2] for rank in range(4)]
        crossed = [*apart[:2], memory[:, 3:5], apart[3]]
        turned = [*apart[:3], memory.T[6:8].T[::-1]]
        own = [memory[2 * rank:2 * rank + 2] for rank in range(4)]
        for words, given, out in (("`out[0]` and `out[1]` overlap", tiles, [one] * 4),
                                  ("`out[1]` and `out[2]` overlap", tiles, crossed),
                                  ("overlap", own, apart),
                                  ("`out[0]` and `tiles[2]` overlap", [*tiles[:2], one.reshape(2, 8), tiles[3]],
                                   [one, *apart[1:]])):
            with self.assertRaises(reshard.InputError) as caught:
                ranks.redistribute(given, source, target, out)
            self.assertIn(words, str(caught.exception))
        for out in (apart, turned):
            for rank, tile in enumerate(ranks.redistribute(tiles, source, target, out)):
                self.assertTrue((tile == whole(source)[:, 2 * rank:2 * rank + 2]).all())

    def test_sums_are_reduced(self):
        source, target = reshard.parse_layout("x=3", "bf16[5,2]{U:x}"), reshard.parse_layout("x=3", "bf16[5,2]")
        tiles = [numpy.full((5, 2), rank + 1, ml_dtypes.bfloat16) for rank in range(3)]
        for tile in reshard.local(3).redistribute(tiles, source, target):
            self.assertTrue((tile == 6).all())

    def test_reshapes(self):
        source, target = reshard.parse_layout("x=4", "f32[24@x]"), reshard.parse_layout("x=4", "f32[4,6@x]")
        array = whole(source)
        moved = reshard.local(4).redistribute(reshard.split(array, source), source, target)
        self.assertTrue(same_bytes(reshard.join(moved, target), array.reshape(4, 6)))

    def test_random_pairs(self):
        draw = random.Random(1)
        for number in range(150):
            sizes = [draw.randint(1, 4) for _ in range(2)]
            mesh = reshard.Mesh({"x": sizes[0], "y": sizes[1]})
            extents = [draw.randint(0, 9) for _ in range(draw.randint(1, 3))]
            dtype = draw.choice(DTYPES)

            def end():
                axes = ["x", "y"]
                draw.shuffle(axes)
                spec = [[] for _ in extents]
                for axis in axes:
                    if draw.random() < 0.7:
                        draw.choice(spec).append(axis)
                return reshard.Layout(mesh, dtype, extents, spec)

            source, target = end(), end()
            with self.subTest(f"{number}: {mesh} {source} to {target}"):
                self.moved(reshard.local(mesh.size), whole(source), source, target)

    def test_what_is_wrong_is_named(self):
        source, target = reshard.parse_layout("x=2", "f32[6@x,4]"), reshard.parse_layout("x=2", "f32[6,4@x]")
        tiles, ranks = reshard.split(whole(source), source), reshard.local(2)
        frozen = reshard.empty_tile(target, 0)
        frozen.flags.writeable = False
        wrong = (
            (reshard.InputError, "the elements of `tiles[1]` are f64, those of its layout f32",
             lambda: ranks.redistribute([tiles[0], tiles[1].astype("f8")], source, target)),
            (reshard.InputError, "rank 0 holds a tile of shape (3, 4), `tiles[0]` has shape (4, 3)",
             lambda: ranks.redistribute([tiles[0].reshape(4, 3), tiles[1]], source, target)),
            (reshard.InputError, "2 ranks were given 1 source and 2 target tiles",
             lambda: ranks.redistribute(tiles[:1], source, target)),
            (reshard.InputError, "`out[0]` is read-only",
             lambda: ranks.redistribute(tiles, source, target, [frozen, reshard.empty_tile(target, 1)])),
            (reshard.InputError, "overlap", lambda: ranks.redistribute(tiles, source, source, tiles)),
            (reshard.InputError, "there are no layouts of >f4",
             lambda: ranks.redistribute([tile.astype(">f4") for tile in tiles], source, target)),
            (reshard.InputError, "ranks", lambda: reshard.local(1).redistribute(tiles[:1], source, target)),
            (reshard.UnsupportedError, "`tiles[0]` lies in a device's memory",
             lambda: ranks.redistribute([HostTensor(tiles[0], 2), tiles[1]], source, target)),
            (TypeError, "`tiles[0]` is a list", lambda: ranks.redistribute([[1, 2], tiles[1]], source, target)),
            (reshard.InputError, "0 ranks are too few", lambda: reshard.local(0)),
            (reshard.InputError, "at most 65536", lambda: reshard.local(2**40)))
        for kind, words, call in wrong:
            with self.assertRaises(kind) as caught:
                call()
            self.assertIn(words, str(caught.exception))
        self.moved(ranks, whole(source), source, target)  # it still works

    def test_split_and_join_refuse_what_they_cannot(self):
        layout, summed = reshard.parse_layout("x=2", "f32[4@x]"), reshard.parse_layout("x=2", "f32[4]{U:x}")
        for call in (lambda: reshard.split(numpy.zeros(5), layout), lambda: reshard.join([numpy.zeros(2)], layout),
                     lambda: reshard.join([numpy.zeros(2), numpy.zeros(3)], layout)):
            self.assertRaises(reshard.InputError, call)
        for call in (lambda: reshard.split(numpy.zeros(4), summed), lambda: reshard.join([numpy.zeros(4)] * 2, summed)):
            self.assertRaises(reshard.UnsupportedError, call)

    def test_other_threads_run_while_bytes_move(self):
        source = reshard.parse_layout("x=2", "f32[4096@x,4096]")
        target = reshard.parse_layout("x=2", "f32[4096,4096@x]")
        ranks, tiles = reshard.local(2), [reshard.empty_tile(source, rank) for rank in range(2)]
        out = ranks.redistribute(tiles, source, target)
        ticks, stop = [], threading.Event()

        def count():
            while not stop.is_set():
                ticks.append(time.perf_counter())
                time.sleep(0)

        counter = threading.Thread(target=count)
        counter.start()
        inside, deadline = 0, time.monotonic() + 60
        while inside <= 10 and time.monotonic() < deadline:  # a busy machine may give the other thread no core for long
            ticks.clear()
            begin = time.perf_counter()
            ranks.redistribute(tiles, source, target, out)
            end = time.perf_counter()
            inside = sum(begin < tick < end for tick in list(ticks))
        stop.set()
        counter.join()
        self.assertGreater(inside, 10)  # if the GIL were held, there would be one or two ticks

    def test_threads_take_turns_on_one_world(self):
        source, target = reshard.parse_layout("x=2", "i64[64@x,8]"), reshard.parse_layout("x=2", "i64[64,8@x]")
        ranks, array, wrong = reshard.local(2), whole(source), []

        def move():
            for _ in range(40):
                if not (reshard.join(ranks.redistribute(reshard.split(array, source), source, target), target) == array).all():
                    wrong.append(1)

        threads = [threading.Thread(target=move) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])


if __name__ == "__main__":
    unittest.main(verbosity=1)
