"""Frozen front ends: functions from images (items, height, width) to features (items, features) that learn no more.

Neural Race, Appendix D, puts a residual network in front of photographs, trained, cut in half and frozen. The paper calls
it ResNet18; the code it points to is the 20-layer variant for 32 × 32 pixels, which is built here (`pretrained_front_end`),
for runs at the paper's size on a GPU. The book's own pages use random features of the same number (`random_front_end`).
Images come in thousands and are rows here: the items stand first.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from lib.data.datasets import Images
from lib.linear.shapes import axes, reals

FrontEnd = Callable[[Tensor], Tensor]  # images (items, height, width) -> features (items, features)
KINDS = ("random", "resnet")


def front_end(
    kind: str, images: Images, *, filters: int, epochs: int, seed: int = 0, device: str | torch.device = "cpu"
) -> FrontEnd:
    """One of the KINDS: "random" with so many `filters` of patches, or "resnet", trained for so many `epochs`."""
    if kind == "random":
        return random_front_end(images.x_train, filters, seed=seed)
    if kind == "resnet":
        return pretrained_front_end(images, epochs, seed=seed, device=device)
    raise ValueError(f"unknown front end {kind!r}; choose {' or '.join(KINDS)}")


class Block(nn.Module):
    """Two convolutions around which the input is passed by; at a new size it is subsampled and padded with zeros."""

    def __init__(self, into: int, out: int, stride: int):
        super().__init__()
        self.first = nn.Conv2d(into, out, 3, stride, 1, bias=False)
        self.second = nn.Conv2d(out, out, 3, 1, 1, bias=False)
        self.norm1, self.norm2 = nn.BatchNorm2d(out), nn.BatchNorm2d(out)
        self.stride, self.extra = stride, out - into

    def forward(self, x: Tensor) -> Tensor:
        """Images (items, into, height, width) -> (items, out, height / stride, width / stride)."""
        h = self.norm2(self.second(torch.relu(self.norm1(self.first(x)))))
        passed = nn.functional.pad(x[..., :: self.stride, :: self.stride], (0, 0, 0, 0, 0, self.extra))
        return torch.relu(h + passed)


class ResNet20(nn.Module):
    """Nine blocks in three stages of 16, 32 and 64 channels, then a linear classifier (He et al. 2016)."""

    def __init__(self, channels: int, classes: int):
        super().__init__()
        self.start = nn.Sequential(nn.Conv2d(channels, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU())
        self.stages = nn.ModuleList(
            nn.Sequential(Block(into, out, stride), Block(out, out, 1), Block(out, out, 1))
            for into, out, stride in ((16, 16, 1), (16, 32, 2), (32, 64, 2))
        )
        self.last = nn.Linear(64, classes)

    def forward(self, x: Tensor) -> Tensor:
        """Scores (items, classes) of images (items, channels, height, width)."""
        h = self.start(x)
        for stage in self.stages:
            h = stage(h)
        return self.last(h.mean((-2, -1)))

    def features(self, x: Tensor) -> Tensor:
        """Output of the second stage (32 channels of half the size), averaged over a 4 × 4 grid: (items, 512)."""
        h = self.stages[1](self.stages[0](self.start(x)))
        return nn.functional.adaptive_avg_pool2d(h, 4).flatten(1)


def pretrained_front_end(
    images: Images, epochs: int, *, batch: int = 128, step: float = 0.1, seed: int = 0, device: str | torch.device = "cpu"
) -> FrontEnd:
    """Train ResNet20 on upright images with labels, freeze it, and return a function from images to 512 features.

    Shifted and mirrored copies, stochastic gradient descent with momentum 0.9, weight decay 1e-4, and a step that falls
    tenfold at half and at three quarters of the training, as usual for this network. With few epochs or images the
    features are accordingly poor.
    """
    generator = torch.Generator().manual_seed(seed)
    x, y = images.x_train[:, None].float().to(device), images.y_train.to(device)
    with torch.random.fork_rng():  # modules draw their weights from the global generator; leave it as it was
        torch.manual_seed(seed)
        network = ResNet20(channels=1, classes=int(y.max()) + 1)
    network = network.to(device, memory_format=torch.channels_last)  # a third faster on a processor
    optimiser = torch.optim.SGD(network.parameters(), lr=step, momentum=0.9, weight_decay=1e-4)
    schedule = torch.optim.lr_scheduler.MultiStepLR(optimiser, [epochs // 2, 3 * epochs // 4])
    mean, deviation = x.mean(), x.std()
    x = nn.functional.pad((x - mean) / deviation, (4, 4, 4, 4)).contiguous(memory_format=torch.channels_last)
    height, width = images.x_train.shape[-2:]
    for _ in range(epochs):
        for chosen in torch.randperm(len(x), generator=generator).split(batch):
            top, left, mirror = torch.randint(9, (2,), generator=generator).tolist() + [torch.rand(1, generator=generator) < 0.5]
            part = x[chosen.to(device), :, top : top + height, left : left + width]
            optimiser.zero_grad()
            loss = nn.functional.cross_entropy(network(part.flip(-1) if mirror else part), y[chosen.to(device)])
            loss.backward()
            optimiser.step()
        schedule.step()
    network.eval().requires_grad_(False)

    @axes(images="items height width")
    def resnet_features(images: Tensor) -> Tensor:
        seen = ((images[:, None].to(device=device, dtype=mean.dtype) - mean) / deviation).split(500)
        return torch.cat([network.features(part) for part in seen]).cpu()

    return resnet_features


def random_front_end(images: Tensor, filters: int, *, side: int = 6, seed: int = 0) -> FrontEnd:
    """A function from images to filters · 16 features: `random_features` with `patch_filters` of these images."""
    kernel = patch_filters(images, filters, side=side, seed=seed)
    return lambda pictures: random_features(pictures, kernel.to(pictures.device))


@axes(images="items height width", filters="number 1 side side")
def random_features(images: Tensor, filters: Tensor) -> Tensor:
    """A frozen convolution with random filters at every second pixel, its ReLU, averaged over a 4 × 4 grid.

    Returns (items, number · 16); the ReLU's threshold is half the deviation of a response. `filters` (number, 1, side,
    side) come from `patch_filters`. It stands in for the paper's pretrained network: the same number of features if there
    are 32 filters, but nothing in it has been learned from labels.
    """
    parts = []
    for batch in images.split(500):
        response = torch.relu(torch.nn.functional.conv2d(batch[:, None], filters, stride=2) - 0.5)
        parts.append(torch.nn.functional.adaptive_avg_pool2d(response, 4).flatten(1))
    return torch.cat(parts)


@axes(images="items height width")
def patch_filters(images: Tensor, number: int, *, side: int = 6, samples: int = 20_000, seed: int = 0) -> Tensor:
    """Filters made of random patches of the images, whitened: (number, 1, side, side).

    Scaled so that their response to the patches from which the whitening comes has deviation 1.
    """
    if not 1 <= number <= samples:
        raise ValueError(f"number must lie between 1 and the {samples} patches that are drawn, got {number}")
    patches = _patches(*reals(images), side, samples, seed).flatten(1)
    patches = patches - patches.mean(1, keepdim=True)
    values, vectors = torch.linalg.eigh((patches.mT @ patches / samples).double())
    whitening = (vectors / (values + 0.05 * values.mean()).sqrt()) @ vectors.mT
    filters = patches[:number].double() @ whitening @ whitening  # once for the patch, once for what it is compared with
    return (filters / (patches.double() @ filters.mT).std(0)[:, None]).to(patches).reshape(number, 1, side, side)


def _patches(images: Tensor, side: int, samples: int, seed: int) -> Tensor:
    """Square pieces of images, at random places of random images: (samples, side, side)."""
    height, width = images.shape[-2:]
    if not 1 <= side <= min(height, width):
        raise ValueError(f"patches of side {side} do not fit into images of {height} × {width} pixels")
    generator, along = torch.Generator().manual_seed(seed), torch.arange(side)
    lengths = (len(images), height - side + 1, width - side + 1)
    which, top, left = (torch.randint(length, (samples,), generator=generator)[:, None, None] for length in lengths)
    return images[which, top + along[:, None], left + along]
