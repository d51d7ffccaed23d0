"""Digests against the formula of the header, written in Python, and at both ends of moves."""

import pathlib
import random
import re
import unittest

import numpy

import reshard

PRIME = 2**61 - 1


def mixed(x):
    x = (x + 0x9e3779b97f4a7c15) % 2**64
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9 % 2**64
    x = (x ^ x >> 27) * 0x94d049bb133111eb % 2**64
    return x ^ x >> 31


def by_formula(seed, data, position, number):
    base = mixed(seed)
    total = 0
    for at, byte in enumerate(data, position):
        block = mixed(mixed(mixed(base ^ 2048) ^ number) ^ at // 4096)
        word = at % 4096 // 4
        value, place = (max(mixed(base ^ key) >> 32, 1) for key in (word, 1024 + word))
        total += ((block >> 3) % (PRIME - 1) + 1) * 256**(at % 4) * (value * byte + place)
    return reshard.Digest(total % PRIME, len(data))


class Digests(unittest.TestCase):
    def test_the_formula(self):
        draw = random.Random(5)
        for _ in range(30):
            seed, number = draw.randrange(2**64), draw.randrange(9)
            data = numpy.frombuffer(draw.randbytes(draw.randrange(600)), numpy.uint8)
            position = draw.choice([0, draw.randrange(9000), draw.randrange(2**60)])
            keys = reshard.DigestKeys(seed)
            self.assertEqual(keys.of(data, position, number), by_formula(seed, data.tolist(), position, number))
            target = numpy.empty_like(data)
            self.assertEqual(keys.copy(data, target, position, number), keys.of(data, position, number))
            self.assertTrue((target == data).all())

    def test_both_ends_of_moves(self):
        draw = random.Random(6)
        texts = ["f32[12@x,10]", "f32[12,10@y]", "f32[12@y,10@x]", "f32[12,10]", "f32[12@(y,x),10]", "f32[12@y/2,10]"]
        for _ in range(40):
            source, target = (reshard.parse_layout("x=2,y=3", text) for text in draw.sample(texts, 2))
            whole = numpy.frombuffer(draw.randbytes(480), numpy.float32).reshape(12, 10)
            keys = reshard.DigestKeys(draw.randrange(2**64))
            tiles = [tile.copy() for tile in reshard.split(whole, source)]
            wanted = [tile.copy() for tile in reshard.split(whole, target)]
            schedule = reshard.RowSchedule([(source, target)])
            for rank in range(6):
                sent = reshard.Digest()
                for sender in range(6):
                    rows = schedule.rows(sender)
                    sent += keys.of_rows(rows[rows["peer"] == rank], [tiles[sender]])
                self.assertEqual(sent, keys.of(wanted[rank]))
                self.assertEqual(sent, keys.of_rows(schedule.rows(rank, "receive"), [wanted[rank]], "receive"))
                wanted[rank].view(numpy.uint8)[0, draw.randrange(4)] ^= 1 << draw.randrange(8)
                self.assertNotEqual(sent, keys.of(wanted[rank]))
            wanted = reshard.split(whole, target)
            sums = [sum((keys.of_tile(layout, rank, numpy.ascontiguousarray(tile)) for rank, tile in enumerate(held)),
                        start=reshard.Digest()) for layout, held in ((source, tiles), (target, wanted))]
            copies = [total.bytes // whole.nbytes for total in sums]
            self.assertEqual(copies[1] * sums[0], copies[0] * sums[1])

    def test_the_page(self):
        page = pathlib.Path(__file__).parents[3] / "docs/rows.md"
        code = re.search(r"```python\n(keys = .*?)```", page.read_text(encoding="utf-8"), re.S).group(1)
        source, target = (reshard.parse_layout("x=4", text) for text in ("f32[64@x,8]", "f32[64,8@x]"))
        names = {"reshard": reshard, "schedule": reshard.RowSchedule([(source, target)]), "ranks": 4}
        exec(code, names)  # pylint: disable=exec-used
        whole = numpy.arange(512, dtype=numpy.float32).reshape(64, 8)
        sent = [names["digests_of"](rank, numpy.ascontiguousarray(tile))
                for rank, tile in enumerate(reshard.split(whole, source))]
        for rank, tile in enumerate(reshard.split(whole, target)):
            tile = tile.copy()
            digests = [one[rank] for one in sent]
            names["check"](rank, tile, digests)
            tile[[3, 5]] = tile[[5, 3]]
            with self.assertRaisesRegex(RuntimeError, "does not hold"):
                names["check"](rank, tile, digests)

    def test_what_is_refused(self):
        keys = reshard.DigestKeys()
        data = numpy.zeros((4, 4), numpy.float32)
        rows = reshard.schedule_rows(*(reshard.parse_layout("x=2", text) for text in ("f32[8@x]", "f32[8]")), 0)
        for wrong, words in ((lambda: keys.of(data.T[:2]), "not dense"), (lambda: keys.of(data, -1), "position -1"),
                             (lambda: keys.of(data, 2**63 - 8), "too large"), (lambda: keys.of(data, 0, -1), "number"),
                             (lambda: keys.copy(data, data[:2].copy()), "64 bytes, the target 32"),
                             (lambda: keys.copy(data, data), "overlap"), (lambda: keys.of_rows(rows, [data[0, :2]]), "ends at byte"),
                             (lambda: keys.of_rows(rows, [data], "both"), "'send' or 'receive'"),
                             (lambda: reshard.DigestKeys(-1), "seed"), (lambda: reshard.Digest(PRIME), "2^61"),
                             (lambda: -1 * reshard.Digest(), "copies")):
            with self.assertRaisesRegex(reshard.InputError, words.replace("^", r"\^")):
                wrong()
        self.assertEqual(repr(reshard.Digest(3, 4)), "Digest(3, 4)")
        self.assertNotEqual(reshard.Digest(3, 4), (3, 4))


if __name__ == "__main__":
    unittest.main()
