"""Page templates against caches that numpy fills."""

import ctypes
import pathlib
import os
import random
import re
import threading
import unittest

import numpy

import reshard
from reshard.pages import PagedCache, PageTemplate

LAYERS, SIZE, LONGEST, PAGES = 2, 3, 2048, 150
NHD, HND = "order 0,1,2,3", "order 0,2,1,3"


class End:
    """One end: its cache, and the memory of each rank, one array for each layer."""

    def __init__(self, draw, heads, first_rank):
        self.heads, self.first = heads, first_rank
        self.tp, self.dcp = draw.choice([(tp, dcp) for tp in (1, 2, 4, 8) for dcp in (1, 2, 4) if tp * dcp <= 8])
        self.interleave, self.block, self.hnd = draw.choice((1, 2, 16)), draw.choice((16, 32, 128)), draw.random() < 0.5
        devices = ",".join(str(first_rank + i) for i in range(self.tp * self.dcp))
        cut = f"@dcp/{self.interleave}" if self.dcp > 1 else ""
        layout = reshard.parse_layout(f"dcp={self.dcp},tp={self.tp}[{devices}]",
                                      f"bf16[{LAYERS},{LONGEST}{cut},{heads}{'@tp' if heads > 1 else ''},{SIZE}]")
        self.cache = PagedCache(layout, self.block, PAGES, HND if self.hnd else NHD)
        self.own_heads = heads // self.tp if heads > 1 else 1
        self.table = draw.sample(range(PAGES), PAGES)
        self.ranks = range(first_rank, first_rank + self.tp * self.dcp)
        shape = (PAGES, self.own_heads, self.block, SIZE) if self.hnd else (PAGES, self.block, self.own_heads, SIZE)
        self.memory = {rank: [numpy.zeros(shape, numpy.uint16) for _ in range(LAYERS)] for rank in self.ranks}

    def filled(self, whole, begin, end):
        """The memory of each rank after the tokens of the whole cache are written."""
        memory = {}
        for rank in self.ranks:
            dcp, tp = divmod(rank - self.first, self.tp)
            tokens = [t for t in range(end) if t // self.interleave % self.dcp == dcp]
            head = tp * self.own_heads if self.heads > 1 else 0
            memory[rank] = [layer.copy() for layer in self.memory[rank]]
            for own, token in enumerate(tokens):
                if token < begin:
                    continue
                page, slot = self.table[own // self.block], own % self.block
                for layer in range(LAYERS):
                    place = (page, slice(None), slot) if self.hnd else (page, slot)
                    memory[rank][layer][place] = whole[layer, token, head:head + self.own_heads]
        return memory

    def addresses(self, rank):
        return [layer.ctypes.data for layer in self.memory[rank]]


def carried_out(local, remote):
    for (source, size, _, step, count), (target, size_too, _, stride, count_too) in zip(local.tolist(), remote.tolist()):
        assert (size, count) == (size_too, count_too)
        for run in range(count):
            ctypes.memmove(target + run * stride, source + run * step, size)


class Pages(unittest.TestCase):
    def test_random_caches(self):
        draw = random.Random(5)
        for number in range(40):
            heads = draw.choice((8, 1))
            source, target = End(draw, heads, 0), End(draw, heads, 8)
            end = draw.randint(1, 400)
            begin = draw.choice((0, draw.randint(0, end - 1)))
            with self.subTest(number, source=vars(source), target=vars(target)):
                whole = numpy.random.default_rng(number).integers(1, 2**16, (LAYERS, end, heads, SIZE), numpy.uint16)
                source.memory = source.filled(whole, 0, end)
                wanted = target.filled(whole, begin, end)
                peers = {rank: target.addresses(rank) for rank in target.ranks}
                for rank in source.ranks:
                    template = PageTemplate(source.cache, target.cache, rank, tokens=1, layers=0)
                    local, remote, parts = template.bind(source.table, target.table, (begin, end), source.addresses(rank),
                                                         peers)
                    self.assertEqual(sum(part.stop - part.start for part in parts.values()), len(local))
                    carried_out(local, remote)
                for rank in target.ranks:
                    numpy.testing.assert_array_equal(target.memory[rank], wanted[rank])

    def test_the_page(self):
        root = pathlib.Path(os.environ.get("RESHARD_ROOT", pathlib.Path(__file__).parents[3]))
        text, = re.findall(r"^```python file=kv_pages.py\n(.*?)^```", (root / "docs/rows.md").read_text(encoding="utf-8"),
                           re.S | re.M)
        names = {}
        exec(compile(text, "kv_pages.py", "exec"), names)
        bases = {rank: [(rank * 32 + layer + 1) << 32 for layer in range(32)] for rank in range(8)}
        parts = names["to_send"](names["connect"](1), range(63), range(8), 1000, bases[1], bases)
        self.assertEqual(sorted(parts), [4, 6])  # the first of tp, on both parts of dcp
        for peer, (local, remote) in parts.items():
            tokens = 504 if peer == 4 else 496  # 63 turns of 16 tokens, the last of 8
            self.assertEqual(int((local[:, 1] * local[:, 4]).sum()), 32 * tokens * 2 * 128 * 2)
            numpy.testing.assert_array_equal(local[:, 1::3], remote[:, 1::3])
            for memory, rank in ((local, 1), (remote, peer)):
                layers = (memory[:, 0] >> numpy.uint64(32)).tolist()
                self.assertEqual(sorted(set(layers)), [rank * 32 + layer + 1 for layer in range(32)])

    def small(self, **changed):
        one = PagedCache(reshard.parse_layout("tp=2", "u8[64,2@tp,4]"), 16, 10)
        other = PagedCache(reshard.parse_layout("tp=1[2]", "u8[64,2@tp,4]"), 32, 10, "order 1,0,2")
        return PageTemplate(one, other._replace(**changed), 1)

    def test_receivers_mirror_senders(self):
        one = PagedCache(reshard.parse_layout("tp=2", "u8[64,2@tp,4]"), 16, 10)
        other = PagedCache(reshard.parse_layout("tp=1[2]", "u8[64,2@tp,4]"), 32, 10, "order 1,0,2")
        local, remote, _ = PageTemplate(one, other, 1).bind([3, 1], [7], 32, 1000, {2: 2000}, 5, [0, 0, 6])
        near, far, parts = PageTemplate(one, other, 2, "receive").bind([3, 1], [7], 32, 2000, {0: 500, 1: 1000}, 6, [4, 5])
        numpy.testing.assert_array_equal(near[parts[1]], remote)
        numpy.testing.assert_array_equal(far[parts[1]], local)
        self.assertEqual(local.tolist(), [[1000 + 3 * 64, 64, 5, 64, 1], [1000 + 64, 64, 5, 64, 1]])
        self.assertEqual(remote.tolist(), [[2000 + 7 * 256 + 128, 64, 6, 64, 1], [2000 + 7 * 256 + 192, 64, 6, 64, 1]])

    def test_tables_of_any_integers(self):
        template = self.small()
        wanted = template.bind([3, 1], [7], 32, 1000, {2: 2000})[0].tolist()
        for kind in (numpy.int32, numpy.int64, numpy.uint16):
            table = numpy.array([3, 99, 1], kind)[::2]  # with a stride
            self.assertEqual(template.bind(table, numpy.array([7], kind), (0, 32), 1000, {2: 2000})[0].tolist(), wanted)

    def test_arrays_live_longer_than_templates(self):
        local, remote, _ = self.small().bind([3, 1], [7], 32, 1000, {2: 2000})
        kept = local.copy()
        template = self.small()
        for page in range(9):
            template.bind([page, 9], [page], 32, 1000, {2: 2000})
        numpy.testing.assert_array_equal(local, kept)
        held = [template.bind([page, 9], [page], 32, 1000, {2: 2000})[1] for page in range(9)]
        self.assertEqual([int(rows[0, 0]) for rows in held], [2000 + page * 256 + 128 for page in range(9)])

    def test_threads(self):
        template, wrong = self.small(), []

        def work(page):
            for _ in range(200):
                if template.bind([page, 9], [page], 32, 1000, {2: 2000})[0][0, 0] != 1000 + page * 64:
                    wrong.append(page)

        threads = [threading.Thread(target=work, args=(page,)) for page in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_mistakes(self):
        template = self.small()
        self.assertEqual(template.period, 32)
        for arguments, words in ((([3], [7], 32), "the table of the source has 1 pages; tokens 0:32 need 2"),
                                 (([3, 10], [7], 32), "entry 1 of the table of the source is page 10; the cache has pages 0 to 9"),
                                 (([3, 1, 2], [7, 7], 33), "page 7 is twice in the table of the target, as entries 0 and 1"),
                                 (([3, 1], [7], 65), "tokens 0:65; the cache has 0:64"),
                                 (([3.0, 1.0], [7], 32), "a page table is one list of integers, not float64 of shape (2,)"),
                                 (([[3, 1]], [7], 32), "a page table is one list of integers, not int64 of shape (1, 2)")):
            with self.subTest(words), self.assertRaisesRegex(reshard.InputError, re.escape(words)):
                template.bind(*arguments, 1000, {2: 2000})
        with self.assertRaisesRegex(reshard.InputError, "array 0 has no address on rank 2"):
            template.bind([3, 1], [7], 32, 1000, {2: 0})
        for changed in ({"block": 0}, {"pages": 0}, {"storage": "order 1,0"}, {"page_stride": -1}):
            with self.subTest(changed), self.assertRaises(reshard.InputError):
                self.small(**changed)
        one = PagedCache(reshard.parse_layout("tp=2", "u8[64,2@tp,4]"), 16, 10)
        for arguments in ({"tokens": 3}, {"tokens": -1}, {"layers": 0}, {"layers": 3}, {"side": "both"}, {"rank": -1}):
            with self.subTest(arguments), self.assertRaises(reshard.InputError):
                PageTemplate(one, one, **{"rank": 0, **arguments})


if __name__ == "__main__":
    unittest.main()
