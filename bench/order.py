#!/usr/bin/env python3
"""order.py [--seed N] [--count N]: the time of messages between nodes in several orders, divided by the time of the
busiest card, in a model. Each card sends and receives at rate 1, and divides its rate evenly among its users.

Loads are parts that senders owe receivers: from blocks of 1 to 12 nodes to blocks of 1 to 12 others, and drawn ones.
Orders: all peers at once; one peer at a time, the peer with the most left, equal ones in turn; all peers in proportion to
their parts, at the pace of the slowest. Prints quantiles of time / busiest card. `two_nodes.py
--case two-meet` runs such loads over a real link."""

import argparse
import random

GRAIN = 0.02  # of a part: for orders that change as they go
QUANTILES = (0.5, 0.9, 0.99, 1)


def busiest(loads):
    return max(max(map(sum, loads)), max(map(sum, zip(*loads))))


def fair_rates(flows):
    """Max-min fair: a card divides its rate evenly among the flows that still grow."""
    left = {card: 1.0 for sender, receiver in flows for card in (("from", sender), ("to", receiver))}
    growing, rates = set(flows), {}
    while growing:
        users = {}
        for flow in growing:
            for card in (("from", flow[0]), ("to", flow[1])):
                users.setdefault(card, []).append(flow)
        card = min(users, key=lambda one: (left[one] / len(users[one]), one))
        rate = left[card] / len(users[card])
        for flow in users[card]:
            rates[flow] = rate
            growing.discard(flow)
            left["from", flow[0]] -= rate
            left["to", flow[1]] -= rate
    return rates


def flows_of(loads):
    return {(i, j): float(parts) for i, row in enumerate(loads) for j, parts in enumerate(row) if parts > 0}


def all_at_once(loads):
    left, time = flows_of(loads), 0.0
    while left:
        rates = fair_rates(left)
        step = min(left[flow] / rates[flow] for flow in left)
        time += step
        left = {flow: parts - rates[flow] * step for flow, parts in left.items() if parts - rates[flow] * step > 1e-9}
    return time


def largest_first(loads):
    left, time, count = flows_of(loads), 0.0, len(loads[0])
    while left:
        chosen = {}
        for flow in left:
            key = (left[flow], -((flow[1] - flow[0]) % count))
            if flow[0] not in chosen or key > chosen[flow[0]][0]:
                chosen[flow[0]] = key, flow
        taking = [flow for _, flow in chosen.values()]
        rates = fair_rates(taking)
        for flow in taking:
            left[flow] -= GRAIN * rates[flow]
            if left[flow] <= 1e-9:
                del left[flow]
        time += GRAIN
    return time


def in_proportion(loads):
    """Each sender has one pace. A receiver that gets more than it can take gives each flow its share."""
    totals = [sum(row) for row in loads]
    left, time = {i: float(total) for i, total in enumerate(totals) if total}, 0.0
    while left:
        pace = dict.fromkeys(left, 1.0)
        for _ in range(100):
            slower = dict(pace)
            for j in range(len(loads[0])):
                wanted = sorted((pace[i] * loads[i][j] / totals[i], i) for i in left if loads[i][j])
                room = 1.0
                for at, (rate, i) in enumerate(wanted):
                    given = min(rate, room / (len(wanted) - at))
                    room -= given
                    slower[i] = min(slower[i], given * totals[i] / loads[i][j])
            if all(pace[i] - slower[i] < 1e-9 for i in left):
                break
            pace = slower
        step = min(left[i] / pace[i] for i in left)
        time += step
        left = {i: parts - pace[i] * step for i, parts in left.items() if parts - pace[i] * step > 1e-9}
    return time


ORDERS = {"all at once": all_at_once, "largest first": largest_first, "in proportion": in_proportion}


def blocks(senders, receivers):
    """The loads of an array of senders x receivers parts, block by block."""
    loads = [[0] * receivers for _ in range(senders)]
    for part in range(senders * receivers):
        loads[part // receivers][part // senders] += 1
    return loads


def drawn(source):
    while True:
        receivers = source.randint(2, 6)
        loads = [[source.choice((0, 0, 1, 1, 2, 3, 5, 8)) for _ in range(receivers)] for _ in range(source.randint(2, 6))]
        if any(map(any, loads)):
            return loads


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=500, help="drawn loads")
    asked = parser.parse_args()
    source = random.Random(asked.seed)
    kinds = {"blocks": [blocks(n, m) for n in range(1, 13) for m in range(1, 13)],
             "drawn": [drawn(source) for _ in range(asked.count)]}
    print(f"| loads | order | {' | '.join(f'{100 * part:g}%' for part in QUANTILES)} |\n|{'---|' * (2 + len(QUANTILES))}")
    for kind, all_loads in kinds.items():
        for name, order in ORDERS.items():
            over = sorted(order(loads) / busiest(loads) for loads in all_loads)
            cells = [f"{over[min(int(part * len(over)), len(over) - 1)]:.2f}" for part in QUANTILES]
            print(f"| {kind} | {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
