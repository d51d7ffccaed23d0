"""The cost of binding page templates from Python: pages.py [rounds]. Medians of the processor time of one thread."""

import sys
import time

import numpy

import reshard
from reshard.pages import PagedCache, PageTemplate

HND = {4: "order 0,2,1,3", 3: "order 1,0,2"}


def cache(mesh, layout):
    layout = reshard.parse_layout(mesh, layout)
    return PagedCache(layout, block=16, pages=8192, storage=HND[len(layout.shape)])


def median_nanoseconds(call, rounds):
    times = []
    for _ in range(rounds):
        begin = time.thread_time_ns()
        rows = call()
        times.append(time.thread_time_ns() - begin)
        del rows  # its memory serves the next call
    return sorted(times)[rounds // 2]


def main(rounds):
    random = numpy.random.default_rng(1)
    source_pages, target_pages = random.permutation(8192), random.permutation(8192)
    layers = PageTemplate(cache("tp=4", "bf16[32,131072,8@tp,128]"), cache("tp=2[4,5]", "bf16[32,131072,8@tp,128]"), 1, tokens=1,
                          layers=0)
    one = PageTemplate(cache("tp=4", "bf16[131072,8@tp,128]"), cache("tp=4[4-7]", "bf16[131072,8@tp,128]"), 1)
    for name, template, count in (("32 layers, TP 4 to 2, HND", layers, 32), ("1,000 pages, one layer, TP 4 to 4", one, 1)):
        own = numpy.arange(1, count + 1, dtype=numpy.uint64) << numpy.uint64(32)
        peers = numpy.tile(own, (8, 1))

        def bind():
            return template.bind(source_pages, target_pages, 16000, own, peers)

        rows, spent = len(bind()[0]), median_nanoseconds(bind, rounds)
        print(f"{name:36} {rows:7} rows {spent / 1e3:8.1f} us {spent / rows:6.1f} ns a row")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 51)
