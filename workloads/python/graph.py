"""Walks a random graph of Python objects: pointers to small objects all over the heap."""

import random

random.seed(7)
COUNT = 600_000
nodes = [{"id": number, "next": None, "weight": str(number)} for number in range(COUNT)]
order = list(range(COUNT))
random.shuffle(order)
for here, there in zip(order, order[1:] + order[:1]):
    nodes[here]["next"] = nodes[there]

at, total = nodes[0], 0
for _ in range(2 * COUNT):
    total += len(at["weight"])
    at = at["next"]
print(f"visited {2 * COUNT}, {total} digits")
