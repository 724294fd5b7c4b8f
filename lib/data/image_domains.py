"""Many domains out of one set of images: permuted pixels, rotations, frozen features (Neural Race, Section 5).

Images are rows, (items, height, width); what comes out are domains in the book's usual columns, (features, items).
"""

import math
from dataclasses import dataclass
from typing import Self

import torch
from scipy.linalg import eigh
from torch import Tensor

from lib.data.datasets import Images
from lib.data.front_ends import FrontEnd
from lib.linear.shapes import axes, reals


@dataclass
class Domains:
    """Inputs of all domains in a basis in which they are uncorrelated, with labels.

    `train` and `test` are (domains, features, items), or (1, features, items) when all domains see the same;
    `variance` is (domains or 1, features); labels are (items,).
    """

    train: Tensor
    test: Tensor
    variance: Tensor
    y_train: Tensor
    y_test: Tensor

    def to(self, device: str | torch.device) -> Self:
        """The same on another device."""
        return type(self)(*(part.to(device) for part in vars(self).values()))


@axes(train="items pixels", test="others pixels")
def principal(train: Tensor, test: Tensor, components: int, *, whiten: bool = False) -> tuple[Tensor, Tensor, Tensor]:
    """Leading principal components of centred inputs: train (..., items, pixels) -> (..., components, items), test alike.

    Also returns the variances (..., components) on the training images: 1 if `whiten`, 0 where nothing varies.
    """
    train, test = reals(train, test)
    mean = train.mean(-2, keepdim=True)
    covariance = (train - mean).mT @ (train - mean) / train.shape[-2]
    basis, variance = _axes(covariance, components, whiten)
    return basis.mT @ (train - mean).mT, basis.mT @ (test - mean).mT, variance


def permuted_domains(images: Images, components: int, *, whiten: bool = False) -> Domains:
    """Domains whose pixels are permuted, without permuting anything: one copy of the principal components for all."""
    train, test, variance = principal(images.x_train.flatten(1), images.x_test.flatten(1), components, whiten=whiten)
    return Domains(train[None], test[None], variance[None], images.y_train, images.y_test)


def rotation_matrix(height: int, width: int, degrees: float) -> Tensor:
    """The matrix, (pixels, pixels) in float64, that does to a flattened image of height · width pixels what `rotate` does."""
    basis = torch.eye(height * width, dtype=torch.float64).reshape(-1, height, width)
    return rotate(basis, degrees).flatten(1).mT


@axes(images="items height width")
def rotate(images: Tensor, degrees: float) -> Tensor:
    """Images (items, height, width) rotated about their centre by bilinear interpolation, empty corners filled with 0."""
    (images,) = reals(images)
    height, width = images.shape[-2:]
    cosine, sine = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    # torch measures both sides of an image from -1 to 1, whatever their lengths
    turn = [[cosine, -sine * height / width, 0.0], [sine * width / height, cosine, 0.0]]
    turns = torch.tensor(turn, dtype=torch.float64)[None]
    grid = torch.nn.functional.affine_grid(turns, (1, 1, height, width), align_corners=False).to(images)  # one for all images
    grid = grid.expand(len(images), -1, -1, -1)
    return torch.nn.functional.grid_sample(images[:, None], grid, align_corners=False)[:, 0]


def rotated_domains(images: Images, domains: int, components: int, *, span: float = 180.0, whiten: bool = False) -> Domains:
    """Domain i sees all images turned by span · i / domains degrees, each in its own principal components.

    The turned correlations are R Σ Rᵀ with the upright Σ and one matrix R per angle, so images are never turned one by one.
    """
    train, test = images.x_train.flatten(1), images.x_test.flatten(1)
    mean = train.mean(0)
    covariance = (train - mean).mT @ (train - mean) / len(train)
    parts = []
    for i in range(domains):
        turn = rotation_matrix(*images.x_train.shape[-2:], span * i / domains).to(train)
        basis, variance = _axes(turn @ covariance @ turn.mT, components, whiten)
        look = basis.mT @ turn
        parts.append((look @ (train - mean).mT, look @ (test - mean).mT, variance))
    return _domains(parts, images)


def featured_domains(
    images: Images, domains: int, components: int, front_end: FrontEnd, *, span: float = 180.0, whiten: bool = False
) -> Domains:
    """Domain i sees all images turned by span · i / domains degrees through a frozen front end.

    `front_end` maps images (items, height, width) to features (items, features), as those of `front_ends` do. Each domain
    is given in its own principal components of these features.
    """
    parts = []
    for i in range(domains):
        seen = [front_end(rotate(x, span * i / domains)) for x in (images.x_train, images.x_test)]
        parts.append(principal(*seen, components, whiten=whiten))
    return _domains(parts, images)


def _domains(parts: list[tuple[Tensor, Tensor, Tensor]], images: Images) -> Domains:
    if not parts:
        raise ValueError("there must be at least one domain")
    train, test, variance = (torch.stack(part) for part in zip(*parts, strict=True))
    return Domains(train, test, variance, images.y_train, images.y_test)


def _axes(covariance: Tensor, components: int, whiten: bool) -> tuple[Tensor, Tensor]:
    """Leading eigenvectors (..., pixels, components) and eigenvalues (..., components) of a covariance."""
    if not 1 <= components <= covariance.shape[-1]:
        raise ValueError(f"components must lie between 1 and the {covariance.shape[-1]} pixels or features, got {components}")
    values, vectors = _largest(covariance.double(), components)
    values, vectors = values.flip(-1), vectors.flip(-1)
    # an eigenvector's sign is arbitrary; fixing it keeps reruns on other machines comparable
    vectors = vectors * torch.where(vectors.sum(-2, keepdim=True) < 0, -1.0, 1.0)
    if whiten:  # but leave out directions in which nothing varies, such as the always empty corner pixels
        keep = (values > 1e-6 * values.amax(-1, keepdim=True)).double()
        scale = keep / values.clamp(min=1e-30).sqrt()
        return (vectors * scale.unsqueeze(-2)).to(covariance), keep.to(covariance)
    return vectors.to(covariance), values.to(covariance)


def _largest(matrix: Tensor, number: int) -> tuple[Tensor, Tensor]:
    """The `number` largest eigenvalues of a symmetric matrix (..., n, n), rising, and their eigenvectors (..., n, number)."""
    if matrix.dim() > 2 or matrix.device.type != "cpu" or 2 * number > len(matrix):
        values, vectors = torch.linalg.eigh(matrix)
        return values[..., -number:], vectors[..., -number:]
    # of a single matrix LAPACK finds a few in a third of the time of all
    found = eigh(matrix.numpy(), subset_by_index=[len(matrix) - number, len(matrix) - 1], driver="evr")
    return torch.as_tensor(found[0]), torch.as_tensor(found[1])
