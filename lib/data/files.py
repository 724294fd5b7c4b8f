"""Files with images: bundled archives and official downloads, every byte checked before it is believed."""

import gzip
import hashlib
import io
import os
import sys
import tarfile
import warnings
import zipfile
import zlib
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).resolve().parent.parent.parent / "data"
SPLITS = ("train", "test")


class DamagedFile(RuntimeError):
    """A data file is truncated, altered, or not of the shape that it should have."""


class MissingFile(FileNotFoundError):
    """A data file is not on this machine and could not be downloaded."""


def balanced_order(labels: np.ndarray, seed: int | tuple[int, ...]) -> np.ndarray:
    """All indices of `labels` in rounds of one image per class, each round in random order; any prefix is balanced."""
    # RandomState and not default_rng: numpy guarantees that its stream never changes, so a seed keeps its subset
    shuffled = np.random.RandomState(seed).permutation(len(labels))
    turn = np.empty(len(labels), dtype=np.int64)
    for label in np.unique(labels):
        members = labels[shuffled] == label
        turn[members] = np.arange(members.sum())
    return shuffled[np.argsort(turn, kind="stable")]


def grayscale(colour: np.ndarray) -> np.ndarray:
    """Luma of uint8 images (n, 3, height, width) as uint8 (n, height, width): the usual .299, .587, .114, rounded."""
    red, green, blue = (colour[:, c].astype(np.uint32) for c in range(3))
    return ((299 * red + 587 * green + 114 * blue + 500) // 1000).astype(np.uint8)


# Reading what is bundled


def read_bundled(name: str, about: dict, splits: list[str]) -> tuple[dict, str]:
    """({split: (images, labels)} as uint8, sha256 of the file)."""
    wanted = [f"{axis}_{split}" for split in splits for axis in "xy"]
    arrays, digest = read_npz(FOLDER / about["file"], about, wanted)
    return {split: (arrays["x_" + split], arrays["y_" + split]) for split in splits}, digest


def read_npz(path: Path, about: dict, wanted: list[str]) -> tuple[dict, str]:
    """The wanted arrays of a bundled file: read once, checked against the sidecar's checksum and shapes."""
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


def cache() -> Path:
    """The user's own folder for downloaded sets."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="IProgress")  # in a notebook pooch's bar asks for a widget; ours is plain text
        import pooch

    return Path(pooch.os_cache("racing-to-simplicity"))


def keeps_compiled_code() -> bool:
    """Whether what numba compiles can be kept in the user's own folder for the next time. It never goes into the checkout."""
    import numba

    folder = numba.config.CACHE_DIR or str(cache() / "compiled")
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError:
        return False
    numba.config.CACHE_DIR = folder
    return os.access(folder, os.W_OK)


# Remote sets: the sidecar names the official files, their sha256, and where they may be found


def read_remote(name: str, about: dict, splits: list[str]) -> tuple[dict, str]:
    """({split: (images, labels)} as uint8, sha256 of all checksums); downloads what is nowhere to be found."""
    _, paths = find(about) or _download(name, about)
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


def find(about: dict) -> tuple[Path, list[Path]] | None:
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
    raw = gzip.decompress(blob)
    sizes = np.frombuffer(raw, ">u4", count=raw[3], offset=4)
    return np.frombuffer(raw, np.uint8, offset=4 + 4 * raw[3]).reshape(sizes).copy()


def _cifar(blob: bytes) -> dict[str, np.ndarray]:
    """CIFAR-10's binary version, chosen since it needs no pickle: records of one label and 3 × 1024 bytes."""
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
    order = balanced_order(arrays["y_test"], 0)
    parts = {"train": np.sort(order[: counts["train"]]), "test": np.sort(order[counts["train"] :])}
    return {f"{axis}_{split}": arrays[axis + "_test"][chosen] for split, chosen in parts.items() for axis in "xy"}
