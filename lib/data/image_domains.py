"""Many domains out of one set of images: permuted pixels, rotations, frozen features (Neural Race, Section 5)."""

import math
from dataclasses import dataclass

import torch

from lib.data.front_ends import patch_filters, random_features


@dataclass
class Domains:
    """Inputs of all domains in a basis in which they are uncorrelated, with labels.

    `train` and `test` are (domains, features, images), or (1, features, images) when all domains see the same;
    `variance` is (domains or 1, features); labels are (images,).
    """

    train: torch.Tensor
    test: torch.Tensor
    variance: torch.Tensor
    y_train: torch.Tensor
    y_test: torch.Tensor

    def to(self, device):
        return Domains(*(part.to(device) for part in vars(self).values()))


def principal(train, test, components, whiten=False):
    """Leading principal components of centred inputs: train (..., images, pixels) -> (..., components, images), test alike.

    Also returns the variances (..., components) on the training images: 1 if `whiten`, 0 where nothing varies.
    """
    mean = train.mean(-2, keepdim=True)
    covariance = (train - mean).mT @ (train - mean) / train.shape[-2]
    axes, variance = _axes(covariance, components, whiten)
    return axes.mT @ (train - mean).mT, axes.mT @ (test - mean).mT, variance


def _axes(covariance, components, whiten):
    values, vectors = torch.linalg.eigh(covariance.double())
    values, vectors = values[..., -components:].flip(-1), vectors[..., -components:].flip(-1)
    # an eigenvector's sign is arbitrary; fixing it keeps reruns on other machines comparable
    vectors = vectors * torch.where(vectors.sum(-2, keepdim=True) < 0, -1.0, 1.0)
    if whiten:  # but leave out directions in which nothing varies, such as the always empty corner pixels
        keep = (values > 1e-6 * values.amax(-1, keepdim=True)).double()
        scale = keep / values.clamp(min=1e-30).sqrt()
        return (vectors * scale.unsqueeze(-2)).to(covariance), keep.to(covariance)
    return vectors.to(covariance), values.to(covariance)


def permuted_domains(images, components, whiten=False):
    """Domains whose pixels are permuted, without permuting anything: one copy of the principal components for all."""
    train, test, variance = principal(images.x_train.flatten(1), images.x_test.flatten(1), components, whiten)
    return Domains(train[None], test[None], variance[None], images.y_train, images.y_test)


def rotation_matrix(side, degrees):
    """The (side², side²) matrix that rotates a flattened image by bilinear interpolation."""
    basis = torch.eye(side * side).reshape(-1, side, side)
    return rotate(basis, degrees).reshape(-1, side * side).mT


def rotate(images, degrees):
    """Images (n, height, width) rotated about their centre, empty corners filled with 0."""
    angle = math.radians(degrees)
    turn = torch.tensor([[math.cos(angle), -math.sin(angle), 0.0], [math.sin(angle), math.cos(angle), 0.0]])
    grid = torch.nn.functional.affine_grid(turn[None].expand(len(images), -1, -1), (len(images), 1, *images.shape[-2:]), False)
    grid = grid.to(images)
    return torch.nn.functional.grid_sample(images[:, None], grid, align_corners=False)[:, 0]


def rotated_domains(images, domains, components, span=180.0, whiten=False):
    """Domain i sees all images turned by span · i / domains degrees, each in its own principal components.

    The turned correlations are R Σ Rᵀ with the upright Σ and one matrix R per angle, so images are never turned one by one.
    """
    train, test = images.x_train.flatten(1), images.x_test.flatten(1)
    mean = train.mean(0)
    covariance = (train - mean).mT @ (train - mean) / len(train)
    parts = []
    for i in range(domains):
        turn = rotation_matrix(images.x_train.shape[-1], span * i / domains).to(train)
        axes, variance = _axes(turn @ covariance @ turn.mT, components, whiten)
        look = axes.mT @ turn
        parts.append((look @ (train - mean).mT, look @ (test - mean).mT, variance))
    train, test, variance = (torch.stack(part) for part in zip(*parts, strict=True))
    return Domains(train, test, variance, images.y_train, images.y_test)


def featured_domains(images, domains, components, span=180.0, filters=32, front_end=None, seed=0, whiten=False):
    """Rotated images seen through a frozen front end, each domain in its own principal components of those features.

    `front_end` maps images (n, height, width) to features (n, features); without one it is `random_features`.
    """
    if front_end is None:
        kernel = patch_filters(images.x_train, filters, seed=seed)

        def front_end(x):
            return random_features(x, kernel)

    parts = []
    for i in range(domains):
        seen = [front_end(rotate(x, span * i / domains)) for x in (images.x_train, images.x_test)]
        parts.append(principal(*seen, components, whiten))
    train, test, variance = (torch.stack(part) for part in zip(*parts, strict=True))
    return Domains(train, test, variance, images.y_train, images.y_test)
