"""ranks.run fails with a rank's own words if the rank ends without a result, and does not wait for the others for ever."""

import os
import signal
import sys
import unittest

import ranks


def ends_early(rank):
    if rank == 1:
        print("no memory left", file=sys.stderr, flush=True)
        os._exit(3)
    signal.pause()  # only the parent ends the others


def has_no_copy(rank):
    return lambda: rank  # no other process can receive a function without a name


class Ranks(unittest.TestCase):
    def test_a_rank_that_ends_without_a_result(self):
        with self.assertRaisesRegex(AssertionError, r"rank 1: exit code 3 and no result; stderr:\nno memory left"):
            ranks.run(3, ends_early)

    def test_a_result_that_cannot_be_sent(self):
        with self.assertRaisesRegex(AssertionError, "(?s)rank 0: .*pickle"):
            ranks.run(2, has_no_copy)

    def test_results_are_in_order_of_ranks(self):
        self.assertEqual(ranks.run(3, lambda rank: rank * 2), [0, 2, 4])


if __name__ == "__main__":
    unittest.main()
