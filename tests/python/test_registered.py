"""reshard.mpi.registered on four ranks. This file starts itself under the launcher."""

import contextlib
import mmap
import os
import random
import sys
import tempfile
import threading
import unittest

import numpy

import four_ranks
import reshard

LONG = bool(os.environ.get("RESHARD_LONG"))
SEQUENCES = int(os.environ.get("RESHARD_SEQUENCES") or (2000 if LONG else 25))
NEIGHBOUR = 0x3C
AT_EXIT = []  # what lives until the exit of Python
TAIL = 2000


def whole(layout, salt):
    count = int(numpy.prod(layout.shape))
    return ((numpy.arange(count) * (2 * salt + 1) + salt) % 251).reshape(layout.shape).astype(layout.numpy_dtype)


def tile_of(layout, rank, salt=1):
    return reshard.split(whole(layout, salt), layout)[rank]


def pages_of_files(array):
    """The number of bytes of the array in pages from reshard."""
    begin, found = array.ctypes.data, 0
    with open("/proc/self/maps", encoding="utf-8") as maps:
        for line in maps:
            if "memfd:reshard" in line:
                low, high = (int(part, 16) for part in line.split()[0].split("-"))
                found += max(0, min(high, begin + array.nbytes) - max(low, begin))
    return found


class Speaker:
    """A foreign array that has only DLPack."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class Held:
    """An array in memory of numpy, malloc or a mapping, registered at times."""

    def __init__(self, shape, dtype, draw):
        self.shape, self.dtype = shape, numpy.dtype(dtype)
        self.registration = None
        self.take(draw)

    def take(self, draw):
        size = int(numpy.prod(self.shape)) * self.dtype.itemsize
        offset = self.dtype.itemsize * draw.randrange(5000)
        self.kind = draw.choice(("numpy", "bytearray", "mapping"))
        everything = offset + size + TAIL
        if self.kind == "numpy":
            self.memory = numpy.empty(everything, numpy.uint8)
        elif self.kind == "bytearray":
            self.memory = numpy.frombuffer(bytearray(everything), numpy.uint8)
        else:
            self.memory = numpy.frombuffer(mmap.mmap(-1, everything, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS),
                                           numpy.uint8)
        self.memory[...] = NEIGHBOUR
        self.offset, self.size = offset, size
        self.show()
        self.remembered = self.array.copy()

    def show(self):
        self.array = self.memory[self.offset:self.offset + self.size].view(self.dtype).reshape(self.shape)

    def write(self, values):
        self.array[...] = values
        self.remembered = self.array.copy()

    def check(self):
        assert self.array.tobytes() == self.remembered.tobytes(), "contents are lost"
        around = (self.memory[:self.offset], self.memory[self.offset + self.size:self.offset + self.size + TAIL])
        assert all((part == NEIGHBOUR).all() for part in around), "neighbours were written"

    def end(self):
        if self.registration is not None:
            self.registration.end()
        self.registration = None


class Sequence:
    """The random actions of one thread. Ranks move at the same places, and choose the rest themselves."""

    paging = threading.RLock()  # no thread forks while pages are exchanged

    def __init__(self, comm, ends, seed):
        self.comm, self.ends = comm, ends
        self.common, self.own = random.Random(seed), random.Random(seed * 31 + comm.rank + 1)
        self.slots = [Held(end.tile_shape(comm.rank), end.numpy_dtype, self.own) for end in ends]

    def run(self):
        for _ in range(12):
            if self.common.randrange(3) == 0:
                self.move(self.common.randrange(1000))
            else:
                self.step(self.own.choice(self.slots))
        for slot in self.slots:
            with self.paging:
                slot.end()
            slot.check()
        self.move(self.common.randrange(1000))

    def move(self, salt):
        source, target = self.slots
        source.write(tile_of(self.ends[0], self.comm.rank, salt))
        target.array[...] = 7
        reshard.mpi.redistribute(self.comm, source.array, *self.ends, target.array)
        target.remembered = tile_of(self.ends[1], self.comm.rank, salt)
        source.check()
        target.check()

    def step(self, slot):
        what = self.own.randrange(8)
        if what < 3 and slot.registration is None:
            some = (slot.array, slot.memory, slot.memory[self.own.randrange(slot.size // 2):], slot.memory[::-3])
            with self.paging:
                slot.registration = reshard.mpi.registered(self.comm, some[self.own.randrange(4)],
                                                           on_fork=self.own.choice(("share", "withhold")))
        elif what == 3:
            with self.paging:
                slot.end()
        elif what == 4:
            with self.paging:
                slot.end()
            slot.take(self.own)
        elif what == 5:
            slot.write(numpy.frombuffer(self.own.randbytes(slot.size), slot.dtype).reshape(slot.shape)
                       if slot.dtype.kind != "f" else self.own.randrange(10**6))
        elif what == 6:
            self.resize(slot)
        elif what == 7 and self.own.randrange(4) == 0:
            self.child(slot)
        slot.check()

    def resize(self, slot):
        if slot.kind != "numpy":
            return
        slot.array = None
        if slot.registration is not None:
            try:
                slot.memory.resize(slot.memory.size + 1)
                raise AssertionError("numpy has resized an array that is registered")
            except ValueError:
                pass
        with self.paging:
            slot.end()
        slot.memory.resize(slot.memory.size + 5000)
        slot.show()

    def child(self, slot):
        """A forked child sees the contents, or does not have the memory."""
        with self.paging:
            slot.end()
            slot.registration = reshard.mpi.registered(self.comm, slot.array)
            child = os.fork()
            if child == 0:
                os._exit(0 if slot.array.tobytes() == slot.remembered.tobytes() else 1)
            assert os.waitpid(child, 0)[1] == 0, "the child sees something else"
            slot.check()
            slot.end()


class Ranks(unittest.TestCase):
    """Each rank runs every test, in the same order. A rank that fails ends all ranks."""

    def setUp(self):
        from mpi4py import MPI
        self.comm = MPI.COMM_WORLD
        self.rank = self.comm.rank
        self.threads = MPI.Query_thread() == MPI.THREAD_MULTIPLE
        reshard.mpi.capabilities(self.comm)  # the first call, which is collective

    def ends(self, source="64@x,320", target="64,320@x", dtype="f32"):
        mesh = reshard.Mesh({"x": four_ranks.RANKS})
        return tuple(reshard.parse_layout(mesh, f"{dtype}[{end}]") for end in (source, target))

    def raises(self, kind, words, call):
        with self.assertRaises(kind) as caught:
            call()
        self.assertIn(words, str(caught.exception))

    def test_inside_a_context_and_by_hand(self):
        source, target = self.ends("640@x,320", "640,320@x")
        for dtype in ("f32", "bf16", "c128"):
            source, target = self.ends("640@x,320", "640,320@x", dtype)
            array, out = tile_of(source, self.rank), reshard.empty_tile(target, self.rank)
            wanted = tile_of(target, self.rank)
            with reshard.mpi.registered(self.comm, array, out) as registration:
                for one in (array, out):
                    self.assertGreaterEqual(pages_of_files(one), one.nbytes - 2 * mmap.PAGESIZE)
                for _ in range(3):
                    out[...] = 0
                    reshard.mpi.redistribute(self.comm, array, source, target, out)
                    self.assertEqual(out.tobytes(), wanted.tobytes())
            self.assertEqual(pages_of_files(array) + pages_of_files(out), 0)
            self.assertEqual(out.tobytes(), wanted.tobytes())
            registration.end()
            registration = reshard.mpi.registered(self.comm, out, on_fork="withhold")
            self.assertGreater(pages_of_files(out), 0)
            del registration
            self.assertEqual(pages_of_files(out), 0)

    def test_orders_strides_and_others_arrays(self):
        large = numpy.arange(60000.0).reshape(200, 300)
        kept = large.copy()
        for array in (large.T, large[::-1, ::-2], large[3:100], Speaker(large), numpy.broadcast_to(large, (2, 200, 300))):
            with reshard.mpi.registered(self.comm, array):
                self.assertGreater(pages_of_files(large), 100000)
                self.assertTrue((large == kept).all())
        large.flags.writeable = False
        with reshard.mpi.registered(self.comm, large):
            self.assertGreater(pages_of_files(large), 0)
        with reshard.mpi.registered(self.comm):
            pass
        with reshard.mpi.registered(self.comm, numpy.empty((3, 0)), numpy.empty(()), numpy.empty(5)):
            pass

    def test_what_is_refused(self):
        array = numpy.zeros(100000)
        refused = reshard.mpi.registered
        with refused(self.comm, array):
            self.raises(reshard.InputError, "it lies in what was registered", lambda: refused(self.comm, array))
            self.raises(ValueError, "resize", lambda: array.resize(200000))
        # If the second of two is refused, the first is unchanged.
        shared = numpy.frombuffer(mmap.mmap(-1, 100000), numpy.uint8)
        self.raises(reshard.InputError, "cannot be registered", lambda: refused(self.comm, array, shared))
        self.assertEqual(pages_of_files(array), 0)
        with tempfile.NamedTemporaryFile() as file:
            file.write(bytes(100000))
            file.flush()
            private = numpy.memmap(file.name, numpy.uint8, "c")
            self.raises(reshard.InputError, "cannot be registered", lambda: refused(self.comm, private))
        self.raises(reshard.InputError, "on_fork is 'share' or 'withhold', not 'both'",
                    lambda: refused(self.comm, array, on_fork="both"))
        self.raises(TypeError, "`arrays[1]` is a list", lambda: refused(self.comm, array, [1]))
        self.raises(TypeError, "an intracommunicator", lambda: refused(None, array))
        self.assertEqual(pages_of_files(array), 0)

    def test_it_may_not_end_in_flight_nor_lose_its_memory(self):
        source, target = self.ends()
        array, out = tile_of(source, self.rank), reshard.empty_tile(target, self.rank)
        plan = reshard.synthesize(source, target, capabilities=reshard.mpi.capabilities(self.comm))
        executor = reshard.mpi.Executor(self.comm, plan)
        registration = reshard.mpi.registered(self.comm, array, out)
        run = executor.start(array, out)
        self.raises(reshard.InputError, "a run is in flight", registration.end)
        run.wait()
        self.assertEqual(out.tobytes(), tile_of(target, self.rank).tobytes())
        del run
        registration.end()

    def test_a_run_that_fails_inside_says_why(self):
        array = numpy.zeros(100000)
        with contextlib.suppress(KeyError), reshard.mpi.registered(self.comm, array):
            raise KeyError("of the body's own")
        self.assertEqual(pages_of_files(array), 0)

    def moved(self, comm, ends, array, out=None, salt=1):
        """Moves on `comm`, checks the result, and returns it."""
        array[...] = tile_of(ends[0], self.rank, salt)
        out = reshard.mpi.redistribute(comm, array, *ends, out)
        self.assertEqual(out.tobytes(), tile_of(ends[1], self.rank, salt).tobytes())
        return out

    def repeating(self, moves=2):
        """A communicator that registers, and the ends of a move of 2 MiB on each rank."""
        comm = self.comm.Dup()
        self.assertEqual(reshard.mpi.register_after(comm, moves), moves)
        return comm, self.ends("2048@x,1024", "2048,1024@x")

    def arrays(self, ends):
        return tuple(numpy.empty(end.tile_shape(self.rank), numpy.float32) for end in ends)

    def free(self, comm):
        reshard.mpi.clear(comm)
        comm.Free()

    def test_targets_that_move_again_are_registered_until_they_die(self):
        comm, ends = self.repeating()
        array, memory = tile_of(ends[0], self.rank), bytearray(2 << 20)
        owner = numpy.frombuffer(memory, numpy.uint8)
        out = owner.view(numpy.float32).reshape(ends[1].tile_shape(self.rank))
        for move in range(5):
            self.moved(comm, ends, array, out, move)
            self.assertEqual(pages_of_files(out) > 0, move >= 2)
        self.assertEqual(pages_of_files(array), 0)  # a registered target is enough
        kept = bytes(memory)
        del out
        self.assertGreater(pages_of_files(owner), 0)  # a view has died, not the owner
        del owner
        again = numpy.frombuffer(memory, numpy.uint8)
        self.assertEqual(pages_of_files(again), 0)
        self.assertEqual(again.tobytes(), kept)
        self.free(comm)

    def test_sources_whose_targets_are_new_are_registered(self):
        comm, ends = self.repeating()
        array = self.arrays(ends)[0]
        for move in range(5):
            self.moved(comm, ends, array, None, move)
            self.assertEqual(pages_of_files(array) > 0, move >= 3)
        self.raises(ValueError, "resize", lambda: array.resize((7,)))
        self.raises(ValueError, "resize", lambda: array.resize((7,), refcheck=False))
        self.free(comm)
        self.assertEqual(pages_of_files(array), 0)

    def test_two_communicators_register_one_array(self):
        (one, ends), (other, _) = self.repeating(1), self.repeating(1)
        array, out = self.arrays(ends)
        for move in range(8):
            for comm in (one, other):
                self.moved(comm, ends, array, out, move)
        self.free(one)
        for move in range(4):
            self.moved(other, ends, array, out, move)
        self.assertGreater(pages_of_files(out), 0)  # by the communicator that is left
        reshard.mpi.register_after(other, 0)
        self.assertEqual(pages_of_files(out) + pages_of_files(array), 0)
        self.moved(other, ends, array, out, 9)
        self.free(other)

    def test_children_do_not_have_what_is_registered(self):
        comm, ends = self.repeating(1)
        array, out = self.arrays(ends)
        for move in range(3):
            self.moved(comm, ends, array, out, move)
        child = os.fork()
        if child == 0:
            absent = pages_of_files(out) == 0
            del array, out
            os._exit(0 if absent else 1)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.moved(comm, ends, array, out, 4)
        self.free(comm)

    def test_what_is_not_registered(self):
        comm, ends = self.repeating(1)
        wide = numpy.empty((ends[0].tile_shape(self.rank)[0], 2048), numpy.float32)
        shared = numpy.frombuffer(mmap.mmap(-1, 2 << 20), numpy.float32).reshape(ends[1].tile_shape(self.rank))
        small = self.ends()
        small_array, small_out = self.arrays(small)
        for move in range(4):
            self.moved(comm, ends, wide[:, ::2], shared, move)
            self.moved(comm, small, small_array, small_out, move)
        for one in (wide, shared, small_array, small_out):
            self.assertEqual(pages_of_files(one), 0)
        self.raises((TypeError, reshard.InputError), "list", lambda: reshard.mpi.redistribute(comm, [1], *ends, shared))
        self.raises(reshard.InputError, "`moves` is -1", lambda: reshard.mpi.register_after(comm, -1))
        self.free(comm)

    def test_arrays_of_dlpack_and_the_measured_number(self):
        comm, ends = self.repeating(1)
        array = tile_of(ends[0], self.rank)
        speaker = Speaker(array)
        for _ in range(4):
            out = reshard.mpi.redistribute(comm, speaker, *ends)
            self.assertEqual(out.tobytes(), tile_of(ends[1], self.rank).tobytes())
        self.assertGreater(pages_of_files(array), 0)
        del speaker
        self.assertEqual(pages_of_files(array), 0)
        moves = reshard.mpi.register_after(comm)
        self.assertGreaterEqual(moves, 1)
        self.assertEqual(comm.bcast(moves), moves)
        self.free(comm)

    def test_arrays_may_be_registered_when_python_exits(self):
        comm, ends = self.repeating(1)
        array, out = self.arrays(ends)
        for move in range(3):
            self.moved(comm, ends, array, out, move)
        self.assertGreater(pages_of_files(out), 0)
        AT_EXIT.extend((comm, array, out))

    def test_random_sequences_in_two_threads(self):
        drawn = int(os.environ.get("RESHARD_SEED") or (random.SystemRandom().randrange(2**40) if LONG else 20261126))
        seed = self.comm.bcast(drawn)
        kinds = [self.ends(), self.ends("4099@x,13", "4099,13@x", "u8"), self.ends("37@x,41", "37,41"),
                 self.ends("130@x,10", "130,10@x", "c128")]
        comms = [self.comm.Dup() for _ in range(2 if self.threads else 1)]
        for comm in comms:
            reshard.mpi.capabilities(comm)
        for number in range(SEQUENCES):
            wrong = [""] * len(comms)

            def run(which, own=seed + number, said=wrong):
                try:
                    Sequence(comms[which], kinds[(own + which) % len(kinds)], 2 * own + which).run()
                except Exception as error:  # noqa: BLE001: a thread's own
                    said[which] = f"{type(error).__name__}: {error}"

            threads = [threading.Thread(target=run, args=(which,)) for which in range(len(comms))]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            if any(wrong):
                sys.stderr.write(f"rank {self.rank}: {wrong}; repeat it: RESHARD_SEED={seed + number}\n")
                self.comm.Abort(1)
        for comm in comms:
            reshard.mpi.clear(comm)
            comm.Free()


Launched = four_ranks.launched()


if __name__ == "__main__":
    four_ranks.main()
