"""The real images: bundled subsets, full sets on demand, every byte checked.

    from lib import datasets
    digits = datasets.load("mnist", train=5000, test=1000, seed=3)
    digits.x_train              # float32 in [0, 1], (5000, 28, 28); .flatten(1) gives vectors of 784 pixels
    digits.y_train              # int64, 500 of each class

Three kinds of sets answer to the one call `load`:

*bundled*    all images lie in `data/`;
*generated*  Ethiopic, Vai, Osmanya, N'Ko: ten bundled exemplar glyphs, deformed at random (`elastic`) from the seed;
*remote*     may not be redistributed or is too big: found in `$RACING_DATA` or the user's cache, else downloaded.

A sidecar in `data/` (`mnist.json`) states for each of them origin, licence, checksums, counts and shape.
`python -m lib data` lists them all. Nothing heavy is imported and no file is opened before something is loaded.
"""

from __future__ import annotations

import difflib
import gzip
import hashlib
import io
import json
import operator
import os
import sys
import tarfile
import warnings
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import torch

FOLDER = Path(__file__).resolve().parent.parent / "data"
LOADED: dict[str, str] = {}  # sha256 of every set that this process has loaded: provenance of a run
SPLITS = ("train", "test")


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


class DamagedFile(RuntimeError):
    """A data file is truncated, altered, or not of the shape that it should have."""


class MissingFile(FileNotFoundError):
    """A data file is not on this machine and could not be downloaded."""


def load(
    name: str, train: int | None = None, test: int | None = None, seed: int = 0, device: str | torch.device = "cpu"
) -> Images:
    """Images and labels of the set `name`: `train` training and `test` test images, or all of them (None).

    A subset is drawn by `seed` and balanced: its images come in rounds of one per class, each round in random order,
    so class sizes differ by at most one and the first k images of a larger subset are the subset of size k. (Where a
    class runs out the others go on alone: MNIST beyond 54,210 training images.) None keeps the order of the file.
    A generated set has 60,000 + 10,000 images for every seed, and None means all of these.

    Raises ValueError for an unknown name, or for more images than there are; `DamagedFile` for a truncated or altered
    file or one of the wrong shape; `MissingFile` if a remote set is neither here nor to be downloaded.
    """
    import torch

    about = describe(name)
    given = {"train": train, "test": test}
    wanted = {split: _count(name, split, given[split], about["counts"][split]) for split in SPLITS}
    if (seed := _whole(seed)) is None or seed >= 2**32:
        raise ValueError("seed must be a whole number from 0 to 2**32 - 1")

    if about["kind"] == "generated":
        parts, digest = _generated(name, about, wanted, seed)
    else:
        read = _read_remote if about["kind"] == "remote" else _read_bundled
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
    import torch

    about = describe(script)
    if about["kind"] != "generated":
        raise ValueError(f"{script} is not a generated set; these are: {', '.join(names('generated'))}")
    arrays, _ = _read_npz(FOLDER / about["file"], about, ["x"])
    return torch.from_numpy(arrays["x"]).to(torch.float32).div_(255)


def elastic(images: torch.Tensor, seed: int, strength: float = 8.0, smoothness: tuple[float, float] = (1.5, 2.5)) -> torch.Tensor:
    """Each image (n, height, width) bent by a smooth random displacement field of its own; same shape.

    Field = strength * Gaussian-filtered uniform noise in (-1, 1), one for rows and one for columns; the filter's width
    in pixels is drawn from `smoothness` for each image; bilinear sampling. This is the deformation by which Afro-MNIST
    (Wu, Yang and Prabhu 2020) makes a data set from single glyphs. Image i depends on the seed and on i alone.
    """
    import torch

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
        sampled = torch.nn.functional.grid_sample(part[:, None], grid, mode="bilinear", align_corners=True)
        bent[start : start + batch] = sampled[:, 0]
    return bent


def balanced_order(labels: np.ndarray, seed: int | tuple[int, ...]) -> np.ndarray:
    """All indices of `labels` in rounds of one image per class, each round in random order; any prefix is balanced."""
    import numpy as np

    # RandomState and not default_rng: numpy guarantees that its stream never changes, so a seed keeps its subset
    shuffled = np.random.RandomState(seed).permutation(len(labels))
    turn = np.empty(len(labels), dtype=np.int64)
    for label in np.unique(labels):
        members = labels[shuffled] == label
        turn[members] = np.arange(members.sum())
    return shuffled[np.argsort(turn, kind="stable")]


def grayscale(colour: np.ndarray) -> np.ndarray:
    """Luma of uint8 images (n, 3, height, width) as uint8 (n, height, width): the usual .299, .587, .114, rounded."""
    import numpy as np

    red, green, blue = (colour[:, c].astype(np.uint32) for c in range(3))
    return ((299 * red + 587 * green + 114 * blue + 500) // 1000).astype(np.uint8)


def names(kind: str | None = None) -> list[str]:
    """Every set that `load` knows, or those of one kind: bundled, generated, remote."""
    kinds = {path.stem: describe(path.stem)["kind"] for path in sorted(FOLDER.glob("*.json"))}
    order = ("bundled", "generated", "remote")
    return [name for wanted in order for name in kinds if kinds[name] == wanted and kind in (None, wanted)]


def describe(name: str) -> dict:
    """What is known of a set without opening it: kind, title, counts, shape, classes, licence, homepage, and more."""
    if isinstance(name, str) and name.isidentifier() and (FOLDER / f"{name}.json").is_file():
        with open(FOLDER / f"{name}.json", encoding="utf-8") as sidecar:
            return json.load(sidecar)
    known = names()
    nearest = difflib.get_close_matches(str(name), known, n=1, cutoff=0.0)[0]
    raise ValueError(f'no data set is called "{name}"; the nearest is "{nearest}" (all: {", ".join(known)})')


def is_available(name: str) -> bool:
    """Whether `load(name)` works without a download."""
    return status(name) != "missing"


def status(name: str) -> str:
    """bundled · in RACING_DATA · cached · missing."""
    about = describe(name)
    if about["kind"] != "remote":
        return "bundled" if (FOLDER / about["file"]).is_file() else "missing"
    found = _find(about)
    if found is None:
        return "missing"
    return "cached" if found[0] == cache() else "in RACING_DATA"


def cache() -> Path:
    """The user's own folder for downloaded sets."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="IProgress")  # in a notebook pooch's bar asks for a widget; ours is plain text
        import pooch

    return Path(pooch.os_cache("racing-to-simplicity"))


def main(argv: list[str]) -> int:
    """`python -m lib data`: list every set; `python -m lib data fetch NAME …`: download and verify these beforehand."""
    if argv and (argv[0] != "fetch" or len(argv) == 1):
        print("usage: python -m lib data                  list every set\n"
              "       python -m lib data fetch NAME ...   download and verify these sets", file=sys.stderr)  # fmt: skip
        return 0 if argv[0] in ("-h", "--help") else 2
    for name in argv[1:]:
        try:
            load(name)
        except (ValueError, DamagedFile, MissingFile) as error:
            print(error, file=sys.stderr)
            return 1

    rows = [("set", "status", "images", "pixels", "licence")]
    for name in names():
        about = describe(name)
        counts = " + ".join(f"{n:,}" for n in about["counts"].values() if n)
        images = counts + (" generated" if about["kind"] == "generated" else "")
        rows.append((name, status(name), images, "×".join(map(str, about["shape"])), about["licence"]))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in [rows[0], tuple("─" * w for w in widths), *rows[1:]]:
        print("  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip())
    print(f"\ncache: {cache()}\nRACING_DATA: {os.environ.get('RACING_DATA') or 'not set'}")
    return 0


# ---------------------------------------------------------------------------------------------------------------------
# Reading what is bundled


def _read_bundled(name: str, about: dict, splits: list[str]) -> tuple[dict, str]:
    """({split: (images, labels)} as uint8, sha256 of the file)."""
    wanted = [f"{axis}_{split}" for split in splits for axis in "xy"]
    arrays, digest = _read_npz(FOLDER / about["file"], about, wanted)
    return {split: (arrays["x_" + split], arrays["y_" + split]) for split in splits}, digest


def _read_npz(path: Path, about: dict, wanted: list[str]) -> tuple[dict, str]:
    """The wanted arrays of a bundled file: read once, checked against the sidecar's checksum and shapes."""
    import numpy as np

    try:
        blob = path.read_bytes()
    except FileNotFoundError:
        raise MissingFile(f"{path} is missing; `git checkout -- data` brings it back") from None
    _check_bytes(path, blob, about["sha256"], about["bytes"], "`git checkout -- data` brings the right one back")
    with np.load(io.BytesIO(blob), allow_pickle=False) as archive:  # members are unpacked only when asked for
        arrays = {key: archive[key] for key in wanted if key in archive}
    for key in wanted:
        _check_shape(path, arrays, key, tuple(about["arrays"][key]["shape"]))
    return arrays, about["sha256"]


def _generated(name: str, about: dict, wanted: dict[str, int], seed: int) -> tuple[dict, str]:
    """Exemplars deformed at random, rounded to bytes as published image sets are."""
    import numpy as np
    import torch

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
    import torch

    apart = torch.arange(size)[:, None] - torch.arange(size)
    width = sigma[:, None, None]
    total = torch.exp(-(torch.arange(-size, size + 1) ** 2) / (2 * width**2)).sum(-1, keepdim=True)
    return torch.exp(-(apart**2) / (2 * width**2)) / total


def _count(name: str, split: str, given: int | None, there: int) -> int:
    if given is None:
        return there
    if (count := _whole(given)) is None:
        raise ValueError(f"{split} must be a whole number of images, or None for all of them, not {given!r}")
    if count > there:
        raise ValueError(f"{name} has {there:,} {split} images, {count:,} were asked for")
    return count


def _whole(number) -> int | None:
    """A number that is 0, 1, 2, …, also one of numpy's; None for anything else."""
    try:
        return int(number) if operator.index(number) >= 0 and not isinstance(number, bool) else None
    except TypeError:
        return None


def _check_bytes(path: Path, blob: bytes, sha256: str, size: int | None, remedy: str) -> None:
    found = hashlib.sha256(blob).hexdigest()
    if found != sha256:
        length = f"{len(blob):,} bytes" + (f" instead of {size:,}" if size not in (None, len(blob)) else "")
        raise DamagedFile(f"{path} is damaged: {length}, sha256 {found} instead of {sha256}; {remedy}")


def _check_shape(path: Path, arrays: dict, key: str, shape: tuple[int, ...]) -> None:
    if key not in arrays:
        raise DamagedFile(f"{path} has no array {key}")
    array = arrays[key]
    if array.shape != shape or array.dtype != "uint8":
        raise DamagedFile(f"{path}: {key} is {array.dtype} {array.shape}, expected uint8 {shape}")


# ---------------------------------------------------------------------------------------------------------------------
# Remote sets: the sidecar names the official files, their sha256, and where they may be found


def _read_remote(name: str, about: dict, splits: list[str]) -> tuple[dict, str]:
    """({split: (images, labels)} as uint8, sha256 of all checksums); downloads what is nowhere to be found."""
    _, paths = _find(about) or _download(name, about)
    if paths[0].suffix == ".npz":
        arrays, sums = _read_by_content(paths[0], about), about["content"]
    else:
        blobs, sums = {}, about["files"]
        for path in paths:
            blobs[path.name] = path.read_bytes()
            _check_bytes(path, blobs[path.name], sums[path.name], None, "delete it and it is downloaded again")
        arrays = _decode(blobs, about)
    if about.get("resplit"):
        arrays = _resplit(arrays, about["counts"])
    for split in SPLITS:
        _check_shape(paths[0].parent, arrays, "x_" + split, (about["counts"][split], *about["shape"]))
        _check_shape(paths[0].parent, arrays, "y_" + split, (about["counts"][split],))
    digest = hashlib.sha256("".join(sums.values()).encode()).hexdigest()
    return {split: (arrays["x_" + split], arrays["y_" + split]) for split in splits}, digest


def _find(about: dict) -> tuple[Path, list[Path]] | None:
    """(the folder searched, the files found in it): first $RACING_DATA, then the cache."""
    folders = [cache()]
    if given := os.environ.get("RACING_DATA"):
        if not Path(given).is_dir():
            raise MissingFile(f"RACING_DATA={given} is not a folder")
        folders.insert(0, Path(given))
    for folder in folders:
        official = [folder / about["folder"] / file for file in about["files"]]
        if all(path.is_file() for path in official):
            return folder, official
        if "npz" in about and (folder / about["npz"]).is_file():
            return folder, [folder / about["npz"]]
    return None


def _download(name: str, about: dict) -> tuple[Path, list[Path]]:
    """Fetch the official files into the cache, with a bar on the terminal (never in a page)."""
    import pooch
    from tqdm import tqdm

    pooch.get_logger().setLevel("WARNING")
    terminal = sys.__stderr__  # in a notebook sys.stderr is the page
    silent = terminal is None or not terminal.isatty()
    folder, paths = cache() / about["folder"], []
    try:
        for file, sha256 in about["files"].items():
            # the total is the server's to say; tqdm insists on one to begin with
            bar = not silent and tqdm(desc=file, total=1, unit="B", unit_scale=True, file=terminal, leave=False)
            fetch = pooch.HTTPDownloader(progressbar=bar)
            url = about["url"] + file
            paths.append(Path(pooch.retrieve(url, f"sha256:{sha256}", fname=file, path=folder, downloader=fetch)))
    except ValueError as error:  # pooch's answer to a wrong checksum
        raise DamagedFile(f"{url} is not the file that it should be: {error}") from error
    except OSError as error:  # every error of the network is one
        also = f"\nor the single file {about['npz']} into {cache()}" if "npz" in about else ""
        raise MissingFile(
            f"{name} ({about['title']}) is not on this machine and {url} cannot be reached.\n"
            f"Put {', '.join(about['files'])}\nfrom {about['url']} into {folder}{also}\n"
            f"(or into a folder of your own, laid out alike, and set RACING_DATA to it)."
        ) from error
    return cache(), paths


def _read_by_content(path: Path, about: dict) -> dict[str, np.ndarray]:
    """Arrays of a .npz of any making: the bytes of the file may differ, those of the arrays may not."""
    import numpy as np

    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = {key: archive[key] for key in about["content"] if key in archive}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise DamagedFile(f"{path} is damaged: {error}") from error
    for key, sha256 in about["content"].items():
        count = sum(about["counts"].values()) if about.get("resplit") else about["counts"][key[2:]]
        _check_shape(path, arrays, key, (count, *about["shape"]) if key[0] == "x" else (count,))
        found = hashlib.sha256(np.ascontiguousarray(arrays[key])).hexdigest()
        if found != sha256:
            raise DamagedFile(f"{path} is damaged: {key} has sha256 {found} instead of {sha256}")
    return arrays


def _decode(blobs: dict[str, bytes], about: dict) -> dict[str, np.ndarray]:
    """The arrays in the official files: gzipped IDX files, or CIFAR-10's archive of binary batches."""
    if about["format"] == "idx":
        return {key: _idx(blobs[file]) for key, file in about["reads"].items()}
    (archive,) = blobs.values()
    arrays = _cifar(archive)
    if about["format"] == "cifar, gray":
        arrays |= {"x_" + split: grayscale(arrays["x_" + split]) for split in SPLITS}
    return arrays


def _idx(blob: bytes) -> np.ndarray:
    """The array in a gzipped IDX file, MNIST's own format: two zeros, type 8 (bytes), dimensions, sizes, values."""
    import numpy as np

    raw = gzip.decompress(blob)
    sizes = np.frombuffer(raw, ">u4", count=raw[3], offset=4)
    return np.frombuffer(raw, np.uint8, offset=4 + 4 * raw[3]).reshape(sizes).copy()


def _cifar(blob: bytes) -> dict[str, np.ndarray]:
    """CIFAR-10's binary version, chosen since it needs no pickle: records of one label and 3 × 1024 bytes."""
    import numpy as np

    members = {"train": [f"data_batch_{i}.bin" for i in range(1, 6)], "test": ["test_batch.bin"]}
    arrays = {}
    with tarfile.open(fileobj=io.BytesIO(blob)) as archive:
        for split, files in members.items():
            raw = b"".join(archive.extractfile(f"cifar-10-batches-bin/{file}").read() for file in files)
            records = np.frombuffer(raw, np.uint8).reshape(-1, 3073)
            arrays["x_" + split] = records[:, 1:].reshape(-1, 3, 32, 32).copy()
            arrays["y_" + split] = records[:, 0].copy()
    return arrays


def _resplit(arrays: dict[str, np.ndarray], counts: dict[str, int]) -> dict[str, np.ndarray]:
    """Test images alone, cut once and for all into some to train on and the rest to test on, both balanced."""
    import numpy as np

    order = balanced_order(arrays["y_test"], 0)
    parts = {"train": np.sort(order[: counts["train"]]), "test": np.sort(order[counts["train"] :])}
    return {f"{axis}_{split}": arrays[axis + "_test"][chosen] for split, chosen in parts.items() for axis in "xy"}
