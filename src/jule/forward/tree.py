"""The tree of all merges, which contains every clustering from n clusters to one."""

from __future__ import annotations

import io
import os
import warnings
from dataclasses import dataclass
from operator import index
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from jule.files import arrays_bytes, write_atomic
from jule.jit import njit

FORMAT = 1


def default_min_cluster_size(n_samples: int, k: int) -> int:
    """Return the smallest size at which a cluster counts towards k: n / (20 k), rounded up.

    Outliers form clusters of a few samples that hardly merge with others. Each of them would take
    the place of a real cluster.

    Examples
    --------
    >>> default_min_cluster_size(70_000, 10)
    350
    """
    return max(1, -(-n_samples // (20 * k)))


@dataclass(frozen=True, eq=False)
class MergeTree:
    """All merges of n samples, in order.

    Nodes are numbered as in scipy: samples are 0 .. n-1, and merge t creates node n+t.

    Attributes
    ----------
    n_samples
        Number of samples, the leaves of the tree.
    merges
        (t, 2) int64: the two nodes of every merge, smaller number first.
    affinities
        (t,) float64: affinity of the two nodes when they merged (Eq. 12); NaN within an initial
        cluster, and 0 where clusters without affinity were joined.
    n_copies
        The number of merges, at the beginning, that join exact copies of samples. Cuts into more
        than `n_different` clusters would separate them.
    n_forced
        The number of merges, at the end, that join clusters which constraints keep apart. No cut
        makes use of them.

    Examples
    --------
    >>> tree = MergeTree(3, np.array([[0, 2], [1, 3]]), np.array([0.5, 0.1]))
    >>> tree.cut(2).tolist()
    [0, 1, 0]
    """

    n_samples: int
    merges: NDArray[np.int64]
    affinities: NDArray[np.float64]
    n_copies: int = 0
    n_forced: int = 0

    def __post_init__(self) -> None:
        merges = np.asarray(self.merges)
        problem = _problem_with(self.n_samples, merges, np.asarray(self.affinities), self.n_copies)
        if not problem and not 0 <= self.n_forced <= len(merges) - self.n_copies:
            problem = f"{self.n_forced} of {len(merges)} merges cannot be forced"
        if problem:
            raise ValueError(f"not a tree of merges: {problem}")
        one, other = merges.T.astype(np.int64)
        ordered = np.stack([np.minimum(one, other), np.maximum(one, other)], axis=1)
        object.__setattr__(self, "merges", ordered)
        object.__setattr__(self, "affinities", np.asarray(self.affinities, np.float64))

    @property
    def n_clusters(self) -> int:
        """Number of clusters after the last merge; 1 if the tree is complete."""
        return self.n_samples - len(self.merges)

    @property
    def fewest(self) -> int:
        """The smallest number of clusters of a cut: constraints may keep several apart."""
        return self.n_clusters + self.n_forced

    @property
    def allowed(self) -> NDArray[np.int64]:
        """The merges that obey all constraints."""
        return self.merges[: len(self.merges) - self.n_forced]

    @property
    def n_initial(self) -> int:
        """Number of initial clusters."""
        return self.n_samples - int(np.isnan(self.affinities).sum())

    @property
    def n_different(self) -> int:
        """Number of samples without exact copies: the most clusters that keep copies together."""
        return self.n_samples - self.n_copies

    def cut(self, k: int, min_cluster_size: int = 1) -> NDArray[np.int32]:
        """Return the labels of k clusters, numbered 0 .. k-1 by their first sample.

        Parameters
        ----------
        k
            Number of clusters, from `n_clusters` to `n_samples`. There are more if constraints keep
            more apart.
        min_cluster_size
            Clusters with fewer samples do not count towards k. The tree is cut after the last merge
            that leaves k clusters of that size. Smaller clusters are absorbed by the branch they
            merge into next, by the largest cluster in it (of equal ones, that of the smaller node).
            If k clusters of that size never exist at the same time, the size is lowered as little
            as necessary, so that there are always k clusters.

        Examples
        --------
        >>> tree = MergeTree(5, np.array([[0, 1], [2, 3], [5, 6], [4, 7]]), np.zeros(4))
        >>> tree.cut(2).tolist(), tree.cut(2, min_cluster_size=2).tolist()
        ([0, 0, 0, 0, 1], [0, 0, 1, 1, 0])
        """
        k, min_cluster_size = index(k), index(min_cluster_size)
        self.check_cut(k)
        if min_cluster_size < 1:
            raise ValueError(f"min_cluster_size must be 1 or more, got {min_cluster_size}")
        if min_cluster_size > 1 and self.n_clusters > 1:
            raise ValueError(
                f"min_cluster_size={min_cluster_size} needs a complete tree, but merging stopped "
                f"at {self.n_clusters} clusters"
            )
        steps, size = self._moment_of(k, min_cluster_size)
        labels: NDArray[np.int32] = _labels_after(self.n_samples, self.allowed, steps, size)
        return labels

    def check_cut(self, k: int) -> None:
        """Raise if there is no cut into k clusters.

        Examples
        --------
        >>> MergeTree(2, np.array([[0, 1]]), np.array([0.5])).check_cut(3)
        Traceback (most recent call last):
        ...
        ValueError: k must be between 1 and 2, the numbers of clusters in this tree, got 3
        """
        if not self.n_clusters <= k <= self.n_samples:
            raise ValueError(
                f"k must be between {self.n_clusters} and {self.n_samples}, the numbers of "
                f"clusters in this tree, got {k}"
            )

    def _moment_of(self, k: int, min_cluster_size: int) -> tuple[int, int]:
        """Return after how many merges a cut happens, and the size from which clusters count."""
        k = max(k, self.fewest)
        if min_cluster_size == 1 or k > self.n_different:
            return self.n_samples - k, 1
        return self._last_moment_with(k, min_cluster_size)

    def _last_moment_with(self, k: int, size: int) -> tuple[int, int]:
        """Return the last step with k clusters of `size`, and the size, lowered if necessary."""
        possible, impossible = 1, size + 1
        while impossible - possible > 1:
            # The given size is tried first; if it is too large, bisection follows.
            tried = size if impossible > size else (possible + impossible) // 2
            if self._last_step_with(k, tried) < 0:
                impossible = tried
            else:
                possible = tried
        return self._last_step_with(k, possible), possible

    def _last_step_with(self, k: int, size: int) -> int:
        """Return the last step with k clusters of `size` that keeps copies together, or -1."""
        if self.n_forced:
            step = int(_last_step_apart(self.n_samples, self.allowed, k, size))
        else:
            step = int(_last_step_with(self.n_samples, self.merges, k, size))
        return step if step >= self.n_copies else -1

    def to_scipy(self) -> NDArray[np.float64]:
        """Return the tree as a linkage matrix for scipy.cluster.hierarchy.

        The height of a merge is its number, 1, 2, ...: affinities do not always decrease from merge
        to merge, so they cannot serve as heights.

        Examples
        --------
        >>> MergeTree(2, np.array([[0, 1]]), np.array([0.5])).to_scipy().tolist()
        [[0.0, 1.0, 1.0, 2.0]]
        """
        if self.n_clusters != 1:
            raise ValueError(
                f"scipy needs a complete tree, but merging stopped at {self.n_clusters} clusters"
            )
        sizes = node_sizes(self.n_samples, self.merges)[self.n_samples :]
        heights = np.arange(1, len(self.merges) + 1)
        return np.column_stack((self.merges, heights, sizes)).astype(np.float64)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the tree to a .npz file, atomically.

        Examples
        --------
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     MergeTree(2, np.array([[0, 1]]), np.array([0.5])).save(f"{folder}/tree.npz")
        ...     MergeTree.load(f"{folder}/tree.npz").merges.tolist()
        [[0, 1]]
        """
        write_atomic(Path(path), self.to_bytes(), private=False)

    def to_bytes(self) -> bytes:
        """Return the content of the file that `save` writes.

        Examples
        --------
        >>> tree = MergeTree(2, np.array([[0, 1]]), np.array([0.5]))
        >>> MergeTree.from_bytes(tree.to_bytes()).merges.tolist()
        [[0, 1]]
        """
        return arrays_bytes(
            format=np.int64(FORMAT),
            n_samples=np.int64(self.n_samples),
            merges=self.merges,
            affinities=self.affinities,
            n_copies=np.int64(self.n_copies),
            **({"n_forced": np.int64(self.n_forced)} if self.n_forced else {}),
        )

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> MergeTree:
        """Read a tree that `save` wrote; raise a ValueError if the file is damaged."""
        content = Path(path).read_bytes()
        try:
            return cls.from_bytes(content)
        except ValueError as error:
            raise ValueError(f"{os.fspath(path)} is {error}") from error

    @classmethod
    def from_bytes(cls, content: bytes, n_samples: int | None = None) -> MergeTree:
        """Read a tree from the content of a file; raise a ValueError if it is damaged.

        Parameters
        ----------
        content
            The content.
        n_samples
            How many samples it must have; by default any number. The checks of a tree take memory
            for as many as it says it has.
        """
        try:
            with (
                warnings.catch_warnings(),
                np.load(io.BytesIO(content), allow_pickle=False) as archive,
            ):
                warnings.simplefilter("ignore")  # about headers that earlier versions wrote
                # Arrays are stored as they are, so none takes more memory than the file.
                if sum(entry.file_size for entry in archive.zip.infolist()) > len(content):
                    raise ValueError("its arrays are larger than the file")
                stored = {name: archive[name] for name in archive.files}
            if _whole_number(stored, "format") != FORMAT:
                raise ValueError(f"unknown format {stored['format']}")
            n_found = _whole_number(stored, "n_samples")
            if n_samples not in (None, n_found):
                raise ValueError(f"it has {n_found} samples instead of {n_samples}")
            tree = cls(
                n_found,
                stored["merges"],
                stored["affinities"],
                _whole_number(stored, "n_copies") if "n_copies" in stored else 0,
                _whole_number(stored, "n_forced") if "n_forced" in stored else 0,
            )
            problem = _problem_with_affinities(tree)
        except Exception as error:  # damaged archives raise almost anything
            raise ValueError(f"not a saved merge tree: {error}") from error
        if problem:
            raise ValueError(f"not a saved merge tree: {problem}")
        return tree


def _whole_number(stored: dict[str, NDArray], name: str) -> int:
    if stored[name].shape != () or stored[name].dtype.kind not in "iu":
        raise ValueError(f"{name} must be a whole number")
    return int(stored[name])


def _problem_with(
    n_samples: int, merges: NDArray, affinities: NDArray, n_copies: int
) -> str | None:
    """Return what is wrong with the merges, or None."""
    if n_samples < 1:
        return f"n_samples is {n_samples}"
    if merges.ndim != 2 or merges.shape[1] != 2 or merges.dtype.kind not in "iu":
        return f"merges must be whole numbers of shape (t, 2), got {merges.dtype} {merges.shape}"
    if affinities.shape != (len(merges),) or affinities.dtype.kind not in "fiu":
        return f"{len(merges)} merges need as many affinities, got shape {affinities.shape}"
    if len(merges) >= n_samples:
        return f"{n_samples} samples allow {n_samples - 1} merges, got {len(merges)}"
    made = n_samples + np.arange(len(merges))
    if merges.size and (merges.min() < 0 or (np.maximum(*merges.T) >= made).any()):
        return "a merge names a node that does not exist yet"
    if merges.size and np.bincount(merges.ravel().astype(np.int64)).max() > 1:
        return "a node is merged twice"
    if not 0 <= n_copies <= len(merges):
        return f"{n_copies} of {len(merges)} merges cannot join copies"
    return None


def _problem_with_affinities(tree: MergeTree) -> str | None:
    """Return what is wrong with the affinities of a stored tree, or None."""
    known = tree.affinities[np.isnan(tree.affinities).sum() :]
    if not (known >= 0).all() or np.isinf(known).any():  # NaN is not 0 or more
        return "affinities must be finite and 0 or more after the initial clusters"
    return None


@njit(cache=True)
def node_sizes(n, merges):
    """Return the number of samples below each node."""
    sizes = np.ones(n + merges.shape[0], np.int64)
    for t in range(merges.shape[0]):
        sizes[n + t] = sizes[merges[t, 0]] + sizes[merges[t, 1]]
    return sizes


@njit(cache=True)
def _last_step_with(n, merges, k, min_size):
    """Return the last step at which k clusters have min_size samples, or -1."""
    sizes = node_sizes(n, merges)
    counting = n if min_size <= 1 else 0
    last = 0 if counting >= k else -1
    for t in range(merges.shape[0]):
        counting -= sizes[merges[t, 0]] >= min_size
        counting -= sizes[merges[t, 1]] >= min_size
        counting += sizes[n + t] >= min_size
        if counting >= k:
            last = t + 1
    return last


@njit(cache=True)
def _last_step_apart(n, merges, k, min_size):
    """Return the last step with k clusters, or -1, where several trees are never joined.

    A tree counts once while it has no cluster of min_size: its samples cannot go elsewhere.
    """
    sizes = node_sizes(n, merges)
    root = np.arange(sizes.shape[0])
    for t in range(merges.shape[0] - 1, -1, -1):
        root[merges[t, 0]] = root[merges[t, 1]] = root[n + t]
    counting = np.zeros(sizes.shape[0], np.int64)
    total = n - merges.shape[0]
    if min_size <= 1:
        total = n
        for sample in range(n):
            counting[root[sample]] += 1
    last = 0 if total >= k else -1
    for t in range(merges.shape[0]):
        own = root[n + t]
        total -= max(1, counting[own])
        counting[own] -= sizes[merges[t, 0]] >= min_size
        counting[own] -= sizes[merges[t, 1]] >= min_size
        counting[own] += sizes[n + t] >= min_size
        total += max(1, counting[own])
        if total >= k:
            last = t + 1
    return last


@njit(cache=True)
def _labels_after(n, merges, steps, min_size):
    """Label the samples by cluster after `steps` merges, with small clusters absorbed."""
    sizes = node_sizes(n, merges)
    goes_to = _goes_to(n, merges, sizes, steps, min_size)
    numbers = np.full(sizes.shape[0], -1, np.int32)
    labels = np.empty(n, np.int32)
    count = 0
    for sample in range(n):
        cluster = goes_to[sample]
        if numbers[cluster] < 0:
            numbers[cluster] = count
            count += 1
        labels[sample] = numbers[cluster]
    return labels


@njit(cache=True)
def _goes_to(n, merges, sizes, steps, min_size):
    """Return, for every node, the cluster (a node) that its samples end up in."""
    heir = _largest_counting_below(n, merges, sizes, steps, min_size)
    goes_to = heir.copy()
    for node in range(sizes.shape[0] - 1, -1, -1):
        if goes_to[node] < 0:  # the top of a tree without a cluster that counts
            goes_to[node] = node
        for side in range(2 if node >= n else 0):
            child = merges[node - n, side]
            if node < n + steps or heir[child] < 0:
                goes_to[child] = goes_to[node]
    return goes_to


@njit(cache=True)
def _largest_counting_below(n, merges, sizes, steps, min_size):
    """Return, for every node, the largest cluster below it that counts, or -1."""
    heir = np.full(sizes.shape[0], -1, np.int64)
    alive = np.ones(n + steps, np.bool_)
    for t in range(steps):
        alive[merges[t, 0]] = False
        alive[merges[t, 1]] = False
    for node in range(n + steps):
        if alive[node] and sizes[node] >= min_size:
            heir[node] = node
    for node in range(n + steps, sizes.shape[0]):
        left, right = heir[merges[node - n, 0]], heir[merges[node - n, 1]]
        if left < 0 or (right >= 0 and sizes[right] > sizes[left]):
            heir[node] = right
        else:
            heir[node] = left
    return heir


def clusters_as_nodes(tree: MergeTree, k: int, min_cluster_size: int = 1) -> NDArray[np.int64]:
    """Return the tree node of each cluster of `tree.cut(k, min_cluster_size)`.

    Small clusters that the cut absorbs are not part of the node.

    Examples
    --------
    >>> tree = MergeTree(4, np.array([[0, 1], [2, 3], [4, 5]]), np.array([0.5, 0.4, 0.1]))
    >>> clusters_as_nodes(tree, 2).tolist()
    [4, 5]
    """
    steps, size = tree._moment_of(k, min_cluster_size)
    nodes: NDArray[np.int64] = _nodes_after(tree.n_samples, tree.allowed, steps, size)
    return nodes


@njit(cache=True)
def _nodes_after(n, merges, steps, min_size):
    sizes = node_sizes(n, merges)
    goes_to = _goes_to(n, merges, sizes, steps, min_size)
    seen = np.zeros(sizes.shape[0], np.bool_)
    nodes = []
    for sample in range(n):
        node = goes_to[sample]
        if not seen[node]:
            seen[node] = True
            nodes.append(node)
    return np.array(nodes, np.int64)
