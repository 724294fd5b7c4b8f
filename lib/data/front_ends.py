"""A residual network for small images, trained, cut in half and frozen: the front end of Neural Race, Appendix D.

The paper calls it ResNet18; the code it points to is the 20-layer variant for 32 × 32 pixels, which is built here. For
runs at the paper's size on a GPU; the book's own pages use `naturalistic.random_features` instead.
"""

import torch
from torch import nn


class Block(nn.Module):
    """Two convolutions around which the input is passed by; at a new size it is subsampled and padded with zeros."""

    def __init__(self, into, out, stride):
        super().__init__()
        self.first = nn.Conv2d(into, out, 3, stride, 1, bias=False)
        self.second = nn.Conv2d(out, out, 3, 1, 1, bias=False)
        self.norm1, self.norm2 = nn.BatchNorm2d(out), nn.BatchNorm2d(out)
        self.stride, self.extra = stride, out - into

    def forward(self, x):
        h = self.norm2(self.second(torch.relu(self.norm1(self.first(x)))))
        passed = nn.functional.pad(x[..., :: self.stride, :: self.stride], (0, 0, 0, 0, 0, self.extra))
        return torch.relu(h + passed)


class ResNet20(nn.Module):
    """Nine blocks in three stages of 16, 32 and 64 channels, then a linear classifier."""

    def __init__(self, channels=1, classes=10):
        super().__init__()
        self.start = nn.Sequential(nn.Conv2d(channels, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU())
        self.stages = nn.ModuleList(
            nn.Sequential(Block(into, out, stride), Block(out, out, 1), Block(out, out, 1))
            for into, out, stride in ((16, 16, 1), (16, 32, 2), (32, 64, 2))
        )
        self.last = nn.Linear(64, classes)

    def forward(self, x):
        h = self.start(x)
        for stage in self.stages:
            h = stage(h)
        return self.last(h.mean((-2, -1)))

    def features(self, x):
        """Output of the second stage (32 channels of 16 × 16), averaged over a 4 × 4 grid: (n, 512)."""
        h = self.stages[1](self.stages[0](self.start(x)))
        return nn.functional.adaptive_avg_pool2d(h, 4).flatten(1)


def pretrained_front_end(images, epochs=100, batch=128, rate=0.1, seed=0, device="cpu"):
    """Train ResNet20 on upright images with labels, freeze it, and return a function from images (n, h, w) to (n, 512).

    Shifted and mirrored copies, momentum 0.9, weight decay 1e-4, and a rate that falls tenfold at half and at three
    quarters of the training, as usual for this network. With few epochs or images the features are accordingly poor.
    """
    generator = torch.Generator().manual_seed(seed)
    with torch.random.fork_rng():  # modules draw their weights from the global generator; leave it as it was
        torch.manual_seed(seed)
        network = ResNet20().to(device)
    optimiser = torch.optim.SGD(network.parameters(), lr=rate, momentum=0.9, weight_decay=1e-4)
    schedule = torch.optim.lr_scheduler.MultiStepLR(optimiser, [epochs // 2, 3 * epochs // 4])
    x, y = images.x_train[:, None].float().to(device), images.y_train.to(device)
    mean, deviation = x.mean(), x.std()
    x = nn.functional.pad((x - mean) / deviation, (4, 4, 4, 4))
    side = images.x_train.shape[-1]
    for _ in range(epochs):
        for chosen in torch.randperm(len(x), generator=generator).split(batch):
            top, left, mirror = torch.randint(9, (2,), generator=generator).tolist() + [torch.rand(1, generator=generator) < 0.5]
            part = x[chosen.to(device), :, top : top + side, left : left + side]
            optimiser.zero_grad()
            loss = nn.functional.cross_entropy(network(part.flip(-1) if mirror else part), y[chosen.to(device)])
            loss.backward()
            optimiser.step()
        schedule.step()
    network.eval().requires_grad_(False)

    def front_end(pictures):
        seen = ((pictures[:, None].to(device) - mean) / deviation).split(500)
        return torch.cat([network.features(part) for part in seen]).cpu()

    return front_end


def random_features(images, filters):
    """A frozen convolution with random filters at every second pixel, its ReLU, averaged over a 4 × 4 grid: (n, filters · 16).

    `filters` (number, 1, side, side) come from `patch_filters`. It stands in for the paper's pretrained network: the
    same number of features, but nothing in it has been learned from labels.
    """
    parts = []
    for batch in images.split(500):
        response = torch.relu(torch.nn.functional.conv2d(batch[:, None], filters.to(batch), stride=2) - 0.5)
        parts.append(torch.nn.functional.adaptive_avg_pool2d(response, 4).flatten(1))
    return torch.cat(parts)


def patch_filters(images, number=32, side=6, samples=20_000, seed=0):
    """Filters made of random patches of the images, whitened: (number, 1, side, side)."""
    generator = torch.Generator().manual_seed(seed)
    height, width = images.shape[-2:]
    which = torch.randint(len(images), (samples,), generator=generator)
    top = torch.randint(height - side + 1, (samples,), generator=generator)
    left = torch.randint(width - side + 1, (samples,), generator=generator)
    step = torch.arange(side)
    patches = images[which[:, None, None], (top[:, None] + step)[:, :, None], (left[:, None] + step)[:, None, :]].flatten(1)
    patches = patches - patches.mean(1, keepdim=True)
    values, vectors = torch.linalg.eigh((patches.mT @ patches / samples).double())
    whitening = (vectors / (values + 0.05 * values.mean()).sqrt()) @ vectors.mT
    filters = patches[:number].double() @ whitening @ whitening  # once for the patch, once for what it is compared with
    return (filters / (patches.double() @ filters.mT).std(0)[:, None]).to(images).reshape(number, 1, side, side)
