"""The weighted triplet loss, one triplet at a time."""


def squared_distance(x, y):
    return sum((a - b) ** 2 for a, b in zip(x, y, strict=True))


def triplet_loss(vectors, labels, gamma, margin, n_nearest=None):
    """Eq. 11 as a hinge on squared distances, averaged over all triplets (i, j, k).

    i and j are two samples of one cluster, k is one of another cluster: all of them, or the
    `n_nearest` nearest to i.
    """
    samples = range(len(vectors))
    hinges = []
    for i in samples:
        others = [k for k in samples if labels[k] != labels[i]]
        others.sort(key=lambda k: squared_distance(vectors[i], vectors[k]))
        for j in samples:
            if j == i or labels[j] != labels[i]:
                continue
            positive = squared_distance(vectors[i], vectors[j])
            for k in others[:n_nearest]:
                negative = squared_distance(vectors[i], vectors[k])
                hinges.append(max(0.0, gamma * positive - negative + margin))
    return sum(hinges) / len(hinges) if hinges else 0.0
