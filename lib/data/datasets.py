"""The real images: bundled subsets, full sets on demand, every byte checked.

    from lib.data import datasets
    digits = datasets.load("mnist", train=5000, test=1000, seed=3)
    digits.x_train              # float32 in [0, 1], (5000, 28, 28); .flatten(1) gives vectors of 784 pixels
    digits.y_train              # int64, 500 of each class

Three kinds of sets answer to the one call `load`:

*bundled*    all images lie in `data/`;
*generated*  Ethiopic, Vai, Osmanya, N'Ko: ten bundled exemplar glyphs, deformed at random (`elastic`) from the seed;
*remote*     may not be redistributed or is too big: found in `$RACING_DATA` or the user's cache, else downloaded.

A sidecar in `data/` (`mnist.json`) states for each of them origin, licence, checksums, counts and shape.
`python -m lib data` lists them all. No file is opened before something is loaded.
"""

import difflib
import json
import zlib
from dataclasses import dataclass
from numbers import Integral

import numpy as np
import torch

from lib.data import files
from lib.data.files import SPLITS, DamagedFile, MissingFile, balanced_order  # noqa: F401 (load raises it)
from lib.linear.shapes import axes, reals

LOADED: dict[str, str] = {}  # sha256 of every set that this process has loaded: provenance of a run


@dataclass(frozen=True, repr=False, eq=False)
class Images:
    """What `load` returns: whole images, never flattened, in [0, 1], with integer labels."""

    name: str
    x_train: torch.Tensor  # float32 (n, height, width); cifar10 in colour: (n, 3, height, width)
    y_train: torch.Tensor  # int64 (n,)
    x_test: torch.Tensor
    y_test: torch.Tensor
    classes: tuple[str, ...]  # the name of each label
    sha256: str  # of the file that the images come from, or of the checksums if there are several

    def __repr__(self) -> str:
        pixels = "×".join(map(str, self.x_train.shape[1:]))
        return f"{self.name}: {len(self.y_train):,} + {len(self.y_test):,} images of {pixels} pixels, {len(self.classes)} classes"


def load(
    name: str, train: int | None = None, test: int | None = None, seed: int = 0, device: str | torch.device = "cpu"
) -> Images:
    """Images and labels of the set `name`: `train` training and `test` test images, or all of them (None).

    A subset is drawn by `seed` and balanced: its images come in rounds of one per class, each round in random order, so the
    first k images of a larger subset are the subset of size k. Where a class runs out the others go on alone: beyond 54,210
    training images of MNIST the last ones are of few classes, so take validation images from the front. None keeps the order
    of the file; of a generated set, 60,000 + 10,000 images for every seed, it means all.

    Raises ValueError for an unknown name, or for more images than there are; `DamagedFile` for a truncated or altered
    file or one of the wrong shape; `MissingFile` if a remote set is neither here nor to be downloaded.
    """
    about = describe(name)
    given = {"train": train, "test": test}
    wanted, seed = dict(about["counts"]), _whole("seed", seed, 2**32 - 1)
    for split in SPLITS:
        if given[split] is not None:
            wanted[split] = _whole(f"{name}: {split}", given[split], wanted[split])
    if about["kind"] == "generated":
        parts, digest = _generated(name, about, wanted, seed)
    else:
        read = files.read_remote if about["kind"] == "remote" else files.read_bundled
        parts, digest = read(name, about, [split for split in SPLITS if wanted[split]])
        for split, (x, y) in parts.items():
            if given[split] is not None:
                chosen = balanced_order(y, (seed, SPLITS.index(split)))[: wanted[split]]
                parts[split] = x[chosen], y[chosen]

    tensors = {}
    for split in SPLITS:
        if split in parts:
            x, y = (torch.from_numpy(a) for a in parts[split])
        else:
            x, y = torch.zeros(0, *about["shape"], dtype=torch.uint8), torch.zeros(0, dtype=torch.uint8)
        tensors["x_" + split] = x.to(device).to(torch.float32).div_(255)
        tensors["y_" + split] = y.to(device).to(torch.int64)
    LOADED[name] = digest
    return Images(name=name, **tensors, classes=tuple(about["classes"]), sha256=digest)


def camera(device: str | torch.device = "cpu") -> torch.Tensor:
    """The photographer's picture as one float32 image in [0, 1], (64, 64)."""
    return load("camera", device=device).x_train[0]


def exemplars(script: str) -> torch.Tensor:
    """The ten digits of a generated script as rendered from the font, float32 in [0, 1], (10, 28, 28)."""
    about = describe(script)
    if about["kind"] != "generated":
        raise ValueError(f"{script} is not a generated set; these are: {', '.join(names('generated'))}")
    arrays, _ = files.read_npz(files.FOLDER / about["file"], about, ["x"])
    return torch.from_numpy(arrays["x"]).to(torch.float32).div_(255)


@axes(images="items height width")
def elastic(images: torch.Tensor, seed: int, strength: float = 8.0, smoothness: tuple[float, float] = (1.5, 2.5)) -> torch.Tensor:
    """Each image (items, height, width) bent by a smooth random displacement field of its own; same shape.

    Field = strength * Gaussian-filtered uniform noise in (-1, 1), one for rows and one for columns; the filter's width
    in pixels is drawn from `smoothness` for each image; bilinear sampling. This is the deformation by which Afro-MNIST
    (Wu, Yang and Prabhu 2020) makes a data set from single glyphs. Image i depends on the seed and on i alone.
    """
    (images,) = reals(images)
    n, height, width = images.shape
    generator = torch.Generator().manual_seed(seed)
    batch = 1000  # always drawn whole, so that a shorter request sees the same random numbers
    rows, columns = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
    low, high = smoothness
    bent = torch.empty_like(images)
    for start in range(0, n, batch):
        part = images[start : start + batch]
        sigma = low + (high - low) * torch.rand(batch, generator=generator)[: len(part)]
        noise = 2 * torch.rand(batch, 2, height, width, generator=generator)[: len(part)] - 1
        # a separable filter with zeros outside the image is one matrix from either side: G noise Gᵀ
        smooth = _gaussian(height, sigma)[:, None] @ noise @ _gaussian(width, sigma)[:, None].mT  # (part, 2, h, w)
        to_row, to_column = rows + strength * smooth[:, 0], columns + strength * smooth[:, 1]
        grid = torch.stack([2 * to_column / (width - 1) - 1, 2 * to_row / (height - 1) - 1], dim=-1)
        sampled = torch.nn.functional.grid_sample(part[:, None], grid.to(images), mode="bilinear", align_corners=True)
        bent[start : start + batch] = sampled[:, 0]
    return bent


def names(kind: str | None = None) -> list[str]:
    """Every set that `load` knows, or those of one kind: bundled, generated, remote."""
    kinds = {path.stem: describe(path.stem)["kind"] for path in sorted(files.FOLDER.glob("*.json"))}
    order = ("bundled", "generated", "remote")
    return [name for wanted in order for name in kinds if kinds[name] == wanted and kind in (None, wanted)]


def describe(name: str) -> dict:
    """What is known of a set without opening it: kind, title, counts, shape, classes, licence, homepage, and more."""
    if isinstance(name, str) and name.isidentifier() and (files.FOLDER / f"{name}.json").is_file():
        with open(files.FOLDER / f"{name}.json", encoding="utf-8") as sidecar:
            try:
                return json.load(sidecar)
            except ValueError:  # also what is not UTF-8
                raise DamagedFile(f"{sidecar.name} is damaged; `git checkout -- data` brings the right one back") from None
    known = names()
    nearest = difflib.get_close_matches(str(name), known, n=1, cutoff=0.0)[0]
    raise ValueError(f'no data set is called "{name}"; the nearest is "{nearest}" (all: {", ".join(known)})')


def status(name: str) -> str:
    """bundled · in RACING_DATA · cached · missing."""
    about = describe(name)
    if about["kind"] != "remote":
        return "bundled" if (files.FOLDER / about["file"]).is_file() else "missing"
    found = files.find(about)
    if found is None:
        return "missing"
    return "cached" if found[0] == files.cache() else "in RACING_DATA"


def _generated(name: str, about: dict, wanted: dict[str, int], seed: int) -> tuple[dict, str]:
    """Exemplars deformed at random, rounded to bytes as published image sets are."""
    glyphs, parts = exemplars(name), {}
    for stream, split in enumerate(SPLITS):
        if wanted[split]:
            # the name takes part: no two scripts share their deformations
            own = np.random.RandomState((seed, stream, zlib.crc32(name.encode()))).randint(2**31, size=2).tolist()
            everything = np.repeat(np.arange(len(glyphs)), about["counts"][split] // len(glyphs))
            y = everything[balanced_order(everything, own[0])[: wanted[split]]]
            x = elastic(glyphs[torch.from_numpy(y)], seed=own[1])
            parts[split] = x.mul_(255).round_().to(torch.uint8).numpy(), y
    return parts, about["sha256"]


def _gaussian(size: int, sigma: torch.Tensor) -> torch.Tensor:
    """Gaussian smoothing along one axis with zeros outside, as matrices (n, size, size), one for each sigma."""
    apart = torch.arange(size)[:, None] - torch.arange(size)
    width = sigma[:, None, None]
    total = torch.exp(-(torch.arange(-size, size + 1) ** 2) / (2 * width**2)).sum(-1, keepdim=True)
    return torch.exp(-(apart**2) / (2 * width**2)) / total


def _whole(what: str, number: int, most: int) -> int:
    """The number, also one of numpy's, if it is one of 0, 1, …, most."""
    if isinstance(number, bool) or not isinstance(number, Integral) or not 0 <= number <= most:
        raise ValueError(f"{what} must be a whole number from 0 to {most:,}, not {number!r}")
    return int(number)
