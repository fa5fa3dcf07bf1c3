"""The layout of the networks: sizes, layers and costs. Importing this needs no torch."""

from __future__ import annotations

CHANNELS = 50  # of every convolution
KERNEL = 5
OUTPUTS = 160  # length of the representation
HIDDEN = 500  # width of the hidden layer for plain vectors ...
RESIDUAL_HIDDEN = 256  # ... and of the head for vectors of an encoder
MOST_MEMBERS = 100  # networks side by side
LARGEST_TOP = 11  # convolutions are added while the map is larger than this ...
LARGEST_UNPOOLED = 8  # ... and a map is pooled only if it is larger than this


def layer_plan(height: int, width: int) -> list[bool]:
    """Return whether pooling follows each convolution, as one boolean per convolution.

    While the larger side of the map exceeds 11, a 5x5 convolution without padding is added,
    followed by 2x2 pooling unless the map is then 8 or smaller. This rule yields all nine networks
    of the paper's appendix. An image too small for it gets one convolution.

    Examples
    --------
    >>> layer_plan(16, 16), layer_plan(28, 28), layer_plan(128, 128)
    ([True], [True, False], [True, True, True, True])
    """
    plan = []
    side = max(height, width)
    while side > LARGEST_TOP:
        side -= KERNEL - 1
        pooled = side > LARGEST_UNPOOLED
        side = -(-side // 2) if pooled else side
        plan.append(pooled)
    return plan or [False]


def input_size(
    height: int, width: int, min_side: int | None = None, max_side: int | None = None
) -> tuple[int, int]:
    """Return the (height, width) at which the network sees images of a size.

    Parameters
    ----------
    height, width
        The size of the images.
    min_side, max_side
        Images are enlarged until their larger side is `min_side`, or shrunk until it is
        `max_side`; None leaves them as they are.

    Examples
    --------
    >>> input_size(128, 96, 16, 32), input_size(28, 28, 16, 32), input_size(8, 8, 16, 32)
    ((32, 24), (28, 28), (16, 16))
    """
    largest = max(height, width)
    side = largest
    if min_side is not None:
        side = max(side, min_side)
    if max_side is not None:
        side = min(side, max_side)
    if side == largest:
        return height, width
    return max(1, round(height * side / largest)), max(1, round(width * side / largest))


def n_weights(shape: tuple[int, ...], outputs: int = OUTPUTS, hidden: int = HIDDEN) -> int:
    """Count the weights of the network for samples of a shape, (h, w, channels) or (features,).

    Examples
    --------
    >>> n_weights((100,)), n_weights((28, 28, 1))
    (131160, 576110)
    """
    if len(shape) == 1:
        return shape[0] * hidden + 2 * hidden + hidden * outputs + outputs
    height, width, channels = shape
    total = 0
    for pooled in layer_plan(height, width):
        kernel = min(KERNEL, height), min(KERNEL, width)
        height, width = height - kernel[0] + 1, width - kernel[1] + 1
        total += CHANNELS * channels * kernel[0] * kernel[1] + 2 * CHANNELS
        channels = CHANNELS
        if pooled:
            height, width = -(-height // 2), -(-width // 2)
    return total + CHANNELS * height * width * outputs + outputs


def multiply_adds(
    shape: tuple[int, ...], min_side: int | None = None, max_side: int | None = None
) -> int:
    """Count the multiply-adds of one forward pass of the network for samples of a shape.

    Examples
    --------
    >>> multiply_adds((100,))
    130000
    """
    if len(shape) == 1:
        return shape[0] * HIDDEN + HIDDEN * OUTPUTS
    height, width = input_size(shape[0], shape[1], min_side, max_side)
    channels = shape[2] if len(shape) == 3 else 1
    total = 0
    for pooled in layer_plan(height, width):
        kernel = min(KERNEL, height), min(KERNEL, width)
        height, width = height - kernel[0] + 1, width - kernel[1] + 1
        total += height * width * CHANNELS * channels * kernel[0] * kernel[1]
        channels = CHANNELS
        if pooled:
            height, width = -(-height // 2), -(-width // 2)
    return total + height * width * channels * OUTPUTS
