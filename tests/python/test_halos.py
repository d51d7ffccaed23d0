"""reshard.mpi.Halo on four ranks, and the programs of docs/halos.md on four ranks and on one."""

import unittest

import numpy

import four_ranks
import reshard


class Ranks(unittest.TestCase):
    """Each rank runs every test, in the same order. A rank that fails ends all ranks."""

    def setUp(self):
        from mpi4py import MPI
        self.comm = MPI.COMM_WORLD
        self.rank = self.comm.rank
        self.mesh = reshard.Mesh({"x": 2, "y": 2})
        self.layout = reshard.Layout(self.mesh, "f64", (6, 4), ("x", "y"))
        self.whole = numpy.arange(24.0).reshape(6, 4) + 1

    def filled(self, width, wrapped):
        """This rank's array after a fill, from the whole array."""
        row, column = self.rank // 2 * 3, self.rank % 2 * 2
        (up, down), (left, right) = width
        if wrapped:
            return numpy.pad(self.whole, 12, "wrap")[12 + row - up:12 + row + 3 + down, 12 + column - left:12 + column + 2 + right]
        return numpy.pad(self.whole, 12)[12 + row - up:12 + row + 3 + down, 12 + column - left:12 + column + 2 + right]

    def test_fills_in_place(self):
        for width in (((1, 1), (1, 1)), ((2, 0), (0, 1)), ((4, 5), (3, 3))):
            for wrapped in (False, True):
                with self.subTest(width=width, wrapped=wrapped):
                    halo = reshard.mpi.Halo(self.comm, self.layout, width, wrapped)
                    wanted = self.filled(width, wrapped)
                    self.assertEqual(halo.shape, wanted.shape)
                    array = halo.allocate()
                    array[halo.core] = reshard.split(self.whole, self.layout)[self.rank]
                    self.assertIs(halo(array), array)
                    self.assertEqual(array.tobytes(), numpy.ascontiguousarray(wanted).tobytes())

    def test_received_bytes_are_the_halo(self):
        halo = reshard.mpi.Halo(self.comm, self.layout, 1, True)
        # On two shards of a periodic dimension, the cells before and after a block are on the same rank.
        self.assertEqual(halo.received_bytes, 8 * (5 * 4 - 3 * 2))

    def test_several_arrays_and_a_source(self):
        rows = reshard.Layout(self.mesh, "f64", (6, 4), (("y", "x"), None))
        halo = reshard.mpi.Halo(self.comm, [self.layout, self.layout], 1, True, source=[None, rows])
        arrays = halo.allocate()
        arrays[0][halo.core[0]] = reshard.split(self.whole, self.layout)[self.rank]
        run = halo.start(arrays, [None, reshard.split(self.whole, rows)[self.rank]])
        run.wait()
        self.assertTrue(run.test())
        wanted = self.filled(((1, 1), (1, 1)), True)
        for array in arrays:
            numpy.testing.assert_array_equal(array, wanted)

    def test_a_source_with_halos_on_other_ranks(self):
        pair = reshard.Layout(reshard.Mesh({"x": 2}, [3, 1]), "f64", (6, 4), ("x", None))
        halo = reshard.mpi.Halo(self.comm, self.layout, 1, True, source=pair, source_width=(2, 0))
        tile = numpy.full((7, 4) if self.rank in (1, 3) else (0, 0), -1.0)
        if self.rank in (1, 3):
            tile[2:5] = self.whole[:3] if self.rank == 3 else self.whole[3:]
        numpy.testing.assert_array_equal(halo(halo.allocate(), tile), self.filled(((1, 1), (1, 1)), True))
        back = reshard.mpi.Halo(self.comm, pair, (1, 0), source=self.layout)
        array = back(back.allocate(), reshard.split(self.whole, self.layout)[self.rank])
        self.assertEqual(array.shape, (5, 4) if self.rank in (1, 3) else (0, 0))
        if self.rank == 3:
            numpy.testing.assert_array_equal(array[1:], self.whole[:4])
        if self.rank == 1:
            numpy.testing.assert_array_equal(array[:-1], self.whole[2:])
        self.raises(reshard.InputError, "(7, 4)" if self.rank in (1, 3) else "(0, 0)",
                    lambda: halo(halo.allocate(), numpy.zeros((3, 4))))

    def test_sum_is_the_adjoint_of_a_fill(self):
        from mpi4py import MPI
        for width in (((1, 1), (1, 1)), ((2, 0), (0, 1)), ((4, 5), (3, 3))):
            for wrapped in (False, True):
                with self.subTest(width=width, wrapped=wrapped):
                    halo = reshard.mpi.Halo(self.comm, self.layout, width, wrapped)
                    filled, summed = halo.allocate(), halo.allocate()
                    tile = reshard.split(self.whole, self.layout)[self.rank]
                    filled[halo.core] = tile
                    halo(filled)
                    summed[...] = numpy.random.default_rng(self.rank).integers(-9, 10, summed.shape)
                    before = summed.copy()
                    self.assertIs(halo.sum(summed), summed)
                    # Small integers: both products are exact. Zeros are beyond open borders.
                    left = self.comm.allreduce(float((filled * before).sum()), MPI.SUM)
                    right = self.comm.allreduce(float((tile * summed[halo.core]).sum()), MPI.SUM)
                    self.assertEqual(left, right)
                    summed[halo.core] = before[halo.core]
                    numpy.testing.assert_array_equal(summed, before)

    def test_sum_counts_the_copies_of_each_element(self):
        halo = reshard.mpi.Halo(self.comm, [self.layout, self.layout], 1, True)
        arrays = halo.allocate()
        for array in arrays:
            array.fill(1)
        run = halo.start_sum(arrays)
        run.wait()
        self.assertTrue(run.test())
        # A block has 3 x 2 elements: a corner has three ghost cells, and an element within a side has one.
        for array, core in zip(arrays, halo.core, strict=True):
            numpy.testing.assert_array_equal(array[core], [[4, 4], [2, 2], [4, 4]])

    def test_errors_of_sums(self):
        halo = reshard.mpi.Halo(self.comm, self.layout)
        self.raises(reshard.InputError, "(5, 3)", lambda: halo.sum(numpy.zeros((5, 3))))
        array = halo.allocate()
        halo.sum(array)
        bytes_only = reshard.mpi.Halo(self.comm, reshard.Layout(self.mesh, "f8_e5m2", (6, 4), ("x", "y")))
        self.raises(reshard.UnsupportedError, "f8_e5m2", lambda: bytes_only.sum(numpy.zeros(3)))

    def raises(self, kind, words, call):
        with self.assertRaises(kind) as caught:
            call()
        self.assertIn(words, str(caught.exception))

    def test_errors_on_all_ranks(self):
        wrong = [2 if self.rank == 1 else 1, 1]
        self.raises(reshard.InputError, "rank 1", lambda: reshard.mpi.Halo(self.comm, self.layout, wrong))
        self.raises(reshard.InputError, "-1", lambda: reshard.mpi.Halo(self.comm, self.layout, -1))
        self.raises(reshard.InputError, "3 entries", lambda: reshard.mpi.Halo(self.comm, self.layout, [1, 1, 1]))
        self.raises(reshard.InputError, "not 3 numbers", lambda: reshard.mpi.Halo(self.comm, self.layout, [1, (1, 1, 1)]))
        self.raises(reshard.InputError, "64 bits", lambda: reshard.mpi.Halo(self.comm, self.layout, 1 << 70))
        self.raises(TypeError, "float", lambda: reshard.mpi.Halo(self.comm, self.layout, [1.5, 1]))
        cyclic = reshard.parse_layout(self.mesh, "f64[6@x/1,4@y]")
        self.raises(reshard.UnsupportedError, "several blocks", lambda: reshard.mpi.Halo(self.comm, cyclic))
        sums = reshard.parse_layout(self.mesh, "f64[6@x,4]{U:y}")
        self.raises(reshard.UnsupportedError, "summands", lambda: reshard.mpi.Halo(self.comm, sums))
        if self.rank == 2:
            self.raises(TypeError, "Layout", lambda: reshard.mpi.Halo(self.comm, [1]))
        else:
            self.raises(reshard.InputError, "rank 2", lambda: reshard.mpi.Halo(self.comm, self.layout))

    def test_errors_before_a_start(self):
        halo = reshard.mpi.Halo(self.comm, self.layout)
        array = halo.allocate()
        array[halo.core] = reshard.split(self.whole, self.layout)[self.rank]
        self.raises(reshard.InputError, "row-major", lambda: halo(numpy.asfortranarray(array)))
        self.raises(reshard.InputError, "(5, 3)", lambda: halo(numpy.zeros((5, 3))))
        self.raises(reshard.InputError, "f64", lambda: halo(array.astype("f4")))
        self.raises(reshard.InputError, "takes no tile", lambda: halo(array, array))
        halo(array)
        numpy.testing.assert_array_equal(array, self.filled(((1, 1), (1, 1)), False))


class Launched(four_ranks.launched()):
    def test_programs_of_the_page(self):
        four_ranks.run_page(self, "halos.md")


if __name__ == "__main__":
    four_ranks.main()
