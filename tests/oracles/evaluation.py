"""The clustering scores written out slowly, straight from their definitions."""

from collections import Counter
from collections.abc import Hashable, Sequence
from itertools import permutations
from math import comb, log, sqrt

Labels = Sequence[Hashable]


def entropy(labels: Labels) -> float:
    n = len(labels)
    return -sum(size / n * log(size / n) for size in Counter(labels).values())


def mutual_information(true: Labels, found: Labels) -> float:
    n = len(true)
    classes, clusters = Counter(true), Counter(found)
    total = 0.0
    for (a, b), both in Counter(zip(true, found, strict=True)).items():
        total += both / n * log(both * n / (classes[a] * clusters[b]))
    return total


def nmi(true: Labels, found: Labels, average: str = "geometric") -> float:
    if len(set(true)) == 1 and len(set(found)) == 1:
        return 1.0
    if len(set(true)) == 1 or len(set(found)) == 1:
        return 0.0
    h1, h2 = entropy(true), entropy(found)
    divisors = {
        "geometric": sqrt(h1 * h2),
        "arithmetic": (h1 + h2) / 2,
        "max": max(h1, h2),
        "min": min(h1, h2),
    }
    return mutual_information(true, found) / divisors[average]


def accuracy(true: Labels, found: Labels) -> float:
    """Tries every one-to-one matching; for a handful of groups only."""
    classes, clusters = sorted(set(true), key=repr), sorted(set(found), key=repr)
    few, many, pairs = classes, clusters, list(zip(true, found, strict=True))
    if len(few) > len(many):
        few, many, pairs = many, few, [(b, a) for a, b in pairs]
    best = 0
    for chosen in permutations(many, len(few)):
        partner = dict(zip(few, chosen, strict=True))
        best = max(best, sum(partner[a] == b for a, b in pairs))
    return best / len(pairs)


def purity(true: Labels, found: Labels) -> float:
    right = 0
    for cluster in set(found):
        members = [a for a, b in zip(true, found, strict=True) if b == cluster]
        right += max(members.count(a) for a in members)
    return right / len(true)


def ari(true: Labels, found: Labels) -> float:
    n = len(true)
    together = sum(comb(c, 2) for c in Counter(zip(true, found, strict=True)).values())
    same_class = sum(comb(c, 2) for c in Counter(true).values())
    same_cluster = sum(comb(c, 2) for c in Counter(found).values())
    most = (same_class + same_cluster) / 2
    if together == most:
        return 1.0
    by_chance = same_class * same_cluster / comb(n, 2)
    return (together - by_chance) / (most - by_chance)


def ami(true: Labels, found: Labels) -> float:
    """Averages the mutual information over every order of `found`; for a few samples only."""
    orders = list(permutations(found))
    by_chance = sum(mutual_information(true, order) for order in orders) / len(orders)
    mean_entropy = (entropy(true) + entropy(found)) / 2
    return (mutual_information(true, found) - by_chance) / (mean_entropy - by_chance)
