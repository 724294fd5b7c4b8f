"""The images: what is bundled is what was built, what is damaged is named, what is generated looks like writing.

Measured on generated scripts: nearest exemplar on 10,000 test images, logistic regression trained on 1,000 and tested on
1,000 images, correlation of an image with its exemplar over 1,000 (chance is 0.1; seed 0):

| script | nearest exemplar | logistic regression | correlation |
|---|---|---|---|
| Ethiopic | 0.972 | 0.987 | 0.80 |
| Vai | 1.000 | 1.000 | 0.83 |
| Osmanya | 1.000 | 1.000 | 0.85 |
| N'Ko | 0.998 | 1.000 | 0.87 |
"""

import gzip
import hashlib
import http.server
import importlib.util
import io
import json
import shutil
import socket
import struct
import tarfile
import threading

import numpy as np
import pytest
import scipy.ndimage
import torch
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from lib.__main__ import cli
from lib.data import datasets
from lib.data import files as on_disk

BUNDLED = ["camera", "cifar10_gray", "fashion_mnist", "mnist"]
SCRIPTS = ["ethiopic", "nko", "osmanya", "vai"]
REMOTE = ["cifar10", "cifar10_gray_full", "fashion_mnist_full", "kannada_mnist", "kmnist", "kmnist_test"]


# ---------------------------------------------------------------------------------------------------------------------
# What is bundled


def test_every_set_is_listed_in_its_kind():
    assert datasets.names() == BUNDLED + SCRIPTS + REMOTE
    assert datasets.names("generated") == SCRIPTS


@pytest.mark.parametrize("name", BUNDLED + SCRIPTS)
def test_file_agrees_with_its_sidecar(name):
    about = datasets.describe(name)
    path = on_disk.FOLDER / about["file"]
    assert hashlib.sha256(path.read_bytes()).hexdigest() == about["sha256"]
    assert path.stat().st_size == about["bytes"]
    with np.load(path, allow_pickle=False) as archive:
        arrays = dict(archive)
    assert {key: {"dtype": str(a.dtype), "shape": list(a.shape)} for key, a in arrays.items()} == about["arrays"]
    assert hashlib.sha256(b"".join(a.tobytes() for a in arrays.values())).hexdigest() == about["content_sha256"]
    for split, counts in about["class_counts"].items():
        labels = arrays["y" if split == "exemplars" else "y_" + split]
        assert np.bincount(labels).tolist() == counts
        assert len(counts) == len(about["classes"])
    for fact in ("title", "homepage", "licence", "rights", "citation", "source", "version", "making", "command"):
        assert about[fact]


def test_rebuilt_archive_is_the_same_byte_for_byte(tmp_path):
    """From the arrays on; `python data/build.py --check` starts from the packages."""
    build = _build_script()
    for name in ("camera", *SCRIPTS):
        with np.load(on_disk.FOLDER / f"{name}.npz") as archive:
            build.write_npz(tmp_path / "again.npz", dict(archive))
        assert (tmp_path / "again.npz").read_bytes() == (on_disk.FOLDER / f"{name}.npz").read_bytes()


def test_readme_is_the_one_that_the_sidecars_give():
    assert (on_disk.FOLDER / "README.md").read_text(encoding="utf-8") == _build_script().readme()


@pytest.mark.parametrize("name, train, test, shape", [
    ("mnist", 60_000, 10_000, (28, 28)),
    ("fashion_mnist", 20_000, 4_000, (28, 28)),
    ("cifar10_gray", 10_000, 2_000, (32, 32)),
    ("camera", 1, 0, (64, 64)),
])  # fmt: skip
def test_whole_sets(name, train, test, shape):
    images = datasets.load(name)
    assert images.x_train.shape == (train, *shape) and images.x_test.shape == (test, *shape)
    assert images.x_train.dtype == torch.float32 and images.y_train.dtype == torch.int64
    assert 0 <= images.x_train.min() < 0.02 and 0.95 < images.x_train.max() <= 1
    assert repr(images).startswith(f"{name}: {train:,} + {test:,} images")
    if name == "mnist":  # known since 1998
        assert images.y_train.bincount().tolist() == [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]


# ---------------------------------------------------------------------------------------------------------------------
# Subsets


@settings(max_examples=25, deadline=None)
@given(labels=st.lists(st.integers(0, 4), min_size=1, max_size=60), seed=st.integers(0, 2**32 - 1), share=st.floats(0, 1))
def test_any_prefix_of_the_order_is_balanced_as_far_as_the_classes_reach(labels, seed, share):
    labels = np.array(labels)
    order = datasets.balanced_order(labels, seed)
    assert sorted(order) == list(range(len(labels)))
    there = np.bincount(labels, minlength=5)
    taken = np.bincount(labels[order[: int(share * len(labels))]], minlength=5)
    unfinished = taken[taken < there]  # classes that still have images
    assert taken.max() <= unfinished.min(initial=taken.max()) + 1


def test_seed_decides_the_subset_and_smaller_subsets_nest():
    def numbers(**options):
        images = datasets.load("fashion_mnist", **options)
        return images.x_train.flatten(1), images.x_test.flatten(1), images.y_train

    train, test, labels = numbers(train=500, test=100, seed=7)
    again = numbers(train=500, test=100, seed=7)
    assert torch.equal(train, again[0]) and torch.equal(test, again[1])
    assert labels.bincount().tolist() == [50] * 10
    assert not torch.equal(train, numbers(train=500, test=0, seed=8)[0])
    assert torch.equal(train[:137], numbers(train=137, test=0, seed=7)[0])
    assert len({row.numpy().tobytes() for row in train}) == 500  # none twice


# ---------------------------------------------------------------------------------------------------------------------
# Refusals


def test_unknown_name_is_answered_with_the_nearest():
    with pytest.raises(ValueError, match='no data set is called "minst"; the nearest is "mnist"'):
        datasets.load("minst")
    with pytest.raises(ValueError, match='the nearest is "fashion_mnist"'):
        datasets.load("Fashion-MNIST")


@pytest.mark.parametrize("options, message", [
    ({"train": 60_001}, "mnist: train must be a whole number from 0 to 60,000, not 60001"),
    ({"train": 2.5}, "train must be a whole number"),
    ({"test": True}, "test must be a whole number"),
    ({"seed": -1}, "seed must be a whole number"),
])  # fmt: skip
def test_impossible_requests(options, message):
    with pytest.raises(ValueError, match=message):
        datasets.load("mnist", **options)


@pytest.fixture
def copied(tmp_path, monkeypatch):
    """A folder of our own with two bundled sets, to do harm in."""
    for name in ("ethiopic", "camera"):
        for ending in ("npz", "json"):
            shutil.copy(on_disk.FOLDER / f"{name}.{ending}", tmp_path)
    monkeypatch.setattr(on_disk, "FOLDER", tmp_path)
    return tmp_path


def test_a_file_that_is_damaged_or_missing_is_named(copied):
    path = copied / "camera.npz"
    content = path.read_bytes()
    for wrong, message in ((content[:700] + b"x" + content[701:], "sha256"), (content[:-100], "3,233 bytes instead of 3,333")):
        path.write_bytes(wrong)
        with pytest.raises(datasets.DamagedFile, match=rf"camera\.npz is damaged.*{message}"):
            datasets.load("camera")
    datasets.load("ethiopic", train=10, test=0)  # the other file is none the worse
    path.unlink()
    with pytest.raises(datasets.MissingFile, match=r"camera\.npz is missing.*git checkout"):
        datasets.load("camera")


# ---------------------------------------------------------------------------------------------------------------------
# Sparing, fast, offline


@pytest.fixture
def no_network(monkeypatch):
    def refuse(*_, **__):
        raise OSError("the network is switched off")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "create_connection", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


@pytest.mark.parametrize("name", BUNDLED + SCRIPTS)
def test_bundled_sets_touch_no_network(no_network, name):
    assert len(datasets.load(name, train=1, test=0).y_train) == 1


# ---------------------------------------------------------------------------------------------------------------------
# Generated scripts


def test_elastic_equals_the_plain_version():
    """One image after the other with scipy: the same noise, filtered, added to the coordinates, sampled bilinearly."""
    glyphs = datasets.exemplars("osmanya")[:5]
    bent = datasets.elastic(glyphs, seed=11)
    generator = torch.Generator().manual_seed(11)
    sigma = 1.5 + torch.rand(1000, generator=generator)
    noise = 2 * torch.rand(1000, 2, 28, 28, generator=generator) - 1
    rows, columns = np.mgrid[:28, :28]
    for i, glyph in enumerate(glyphs.numpy()):
        fields = [
            scipy.ndimage.gaussian_filter(f.double().numpy(), sigma[i].item(), mode="constant", truncate=12) for f in noise[i]
        ]
        plain = scipy.ndimage.map_coordinates(glyph.astype(float), [rows + 8 * fields[0], columns + 8 * fields[1]], order=1)
        assert np.abs(bent[i].numpy() - plain).max() < 1e-4  # float32 against float64


@pytest.mark.parametrize("name, least", [("ethiopic", 0.95), ("vai", 0.98), ("osmanya", 0.98), ("nko", 0.98)])
def test_generated_digits_can_be_told_apart(name, least):
    """Measured: see the head of this file. The bounds leave a few standard errors (0.005 at 0.97) for 1,000 images."""
    from sklearn.linear_model import LogisticRegression

    images = datasets.load(name, train=1000, test=1000, seed=1)
    assert images.y_train.bincount().tolist() == [100] * 10
    x, y = images.x_test.flatten(1), images.y_test
    nearest = torch.cdist(x, datasets.exemplars(name).flatten(1)).argmin(1)
    assert (nearest == y).float().mean() > least
    regression = LogisticRegression(max_iter=100).fit(images.x_train.flatten(1), images.y_train)
    assert regression.score(x, y) > 0.97


def test_generated_digits_differ_from_their_exemplars_and_from_each_other():
    """Mean correlation 0.84 over the four scripts, as measured on the published recipe; undeformed it would be 1."""
    means = []
    for name in SCRIPTS:
        images = datasets.load(name, train=0, test=1000)
        own = datasets.exemplars(name)[images.y_test]
        pairs = [torch.corrcoef(torch.stack([a.flatten(), b.flatten()]))[0, 1] for a, b in zip(images.x_test, own, strict=True)]
        means.append(torch.stack(pairs).mean().item())
        assert len({image.numpy().tobytes() for image in images.x_test}) == 1000
    assert np.mean(means) == pytest.approx(0.84, abs=0.015)  # standard error 0.001; the seed moves it by as much


def test_generated_set_is_fixed_by_its_seed_and_nests():
    few, more = (datasets.load("vai", train=n, test=10, seed=5) for n in (30, 1500))
    assert torch.equal(few.x_train, more.x_train[:30]) and torch.equal(few.y_train, more.y_train[:30])
    assert torch.equal(few.x_test, more.x_test)
    assert not torch.equal(few.x_train, datasets.load("vai", train=30, test=0, seed=6).x_train)
    assert not torch.equal(few.x_train[:10], few.x_test)  # train and test are not one stream
    assert set((more.x_train * 255).unique().tolist()) <= set(map(float, range(256)))  # bytes, as in published sets


# ---------------------------------------------------------------------------------------------------------------------
# Remote sets, with small stand-ins


def _idx(array):
    head = struct.pack(">BBBB", 0, 0, 8, array.ndim) + b"".join(struct.pack(">I", n) for n in array.shape)
    return gzip.compress(head + array.tobytes(), mtime=0)


@pytest.fixture
def away(tmp_path, monkeypatch):
    """A remote set of 40 + 20 tiny images: its sidecar, its files (not yet anywhere), an empty cache."""
    rng = np.random.default_rng(0)
    arrays = {"x_train": rng.integers(0, 256, (40, 4, 4)), "y_train": np.arange(40) % 4,
              "x_test": rng.integers(0, 256, (20, 4, 4)), "y_test": np.arange(20) % 4}  # fmt: skip
    arrays = {key: array.astype(np.uint8) for key, array in arrays.items()}
    files = {key + ".gz": _idx(array) for key, array in arrays.items()}
    about = {
        "kind": "remote", "title": "tiny images", "homepage": "", "licence": "none", "url": "http://127.0.0.1:9/",
        "files": {file: hashlib.sha256(content).hexdigest() for file, content in files.items()},
        "counts": {"train": 40, "test": 20}, "shape": [4, 4], "classes": list("abcd"), "format": "idx",
        "reads": {key: key + ".gz" for key in arrays}, "folder": "tiny", "npz": "tiny.npz",
        "content": {key: hashlib.sha256(array.tobytes()).hexdigest() for key, array in arrays.items()},
    }  # fmt: skip
    for folder in ("data", "cache", "own"):
        (tmp_path / folder).mkdir()
    (tmp_path / "data/tiny.json").write_text(json.dumps(about))
    monkeypatch.setattr(on_disk, "FOLDER", tmp_path / "data")
    monkeypatch.setattr(on_disk, "cache", lambda: tmp_path / "cache")
    monkeypatch.delenv("RACING_DATA", raising=False)
    return arrays, files, about, tmp_path


def _put(files, folder):
    folder.mkdir(parents=True, exist_ok=True)
    for file, content in files.items():
        (folder / file).write_bytes(content)


def test_offline_message_names_files_and_folder(away, no_network):
    _, _, _, root = away
    assert datasets.status("tiny") == "missing"
    with pytest.raises(datasets.MissingFile) as caught:
        datasets.load("tiny")
    for part in ("tiny images", "x_train.gz, y_train.gz", str(root / "cache/tiny"), "tiny.npz", "RACING_DATA"):
        assert part in str(caught.value)


def test_download_into_the_cache(away):
    arrays, files, about, root = away
    _put(files, root / "home")
    served = []

    class Home(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *rest):
            super().__init__(*rest, directory=str(root / "home"))

        def log_message(self, *rest):
            served.append(self.path)

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Home)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        about["url"] = f"http://127.0.0.1:{server.server_port}/"
        (root / "data/tiny.json").write_text(json.dumps(about))
        images = datasets.load("tiny")
        assert np.array_equal((images.x_train * 255).numpy(), arrays["x_train"])
        assert np.array_equal(images.y_test.numpy(), arrays["y_test"])
        assert datasets.status("tiny") == "cached" and len(served) == 4
        datasets.load("tiny")
        assert len(served) == 4  # the second time from the cache

        shutil.rmtree(root / "cache/tiny")
        (root / "home/x_test.gz").write_bytes(b"something else")
        with pytest.raises(datasets.DamagedFile, match=r"x_test\.gz is not the file that it should be"):
            datasets.load("tiny")
    finally:
        server.shutdown()
        server.server_close()


def test_racing_data_is_searched_first(away, monkeypatch, no_network):
    arrays, files, _, root = away
    _put(files, root / "cache/tiny")
    monkeypatch.setenv("RACING_DATA", str(root / "own"))
    assert datasets.status("tiny") == "cached"
    np.savez(root / "own/tiny.npz", **arrays)  # other bytes than any we know, the same arrays
    assert datasets.status("tiny") == "in RACING_DATA"
    assert np.array_equal((datasets.load("tiny").x_test * 255).numpy(), arrays["x_test"])
    _put(files, root / "own/tiny")
    assert np.array_equal((datasets.load("tiny").x_test * 255).numpy(), arrays["x_test"])
    assert datasets.load("tiny", train=8, test=4).y_train.bincount().tolist() == [2] * 4

    monkeypatch.setenv("RACING_DATA", str(root / "nowhere"))
    with pytest.raises(datasets.MissingFile, match="RACING_DATA=.*nowhere is not a folder"):
        datasets.load("tiny")


@pytest.mark.parametrize("harm, message", [
    (lambda a: a | {"x_train": a["x_train"].reshape(40, 16)}, r"x_train is uint8 \(40, 16\), expected uint8 \(40, 4, 4\)"),
    (lambda a: a | {"x_train": a["x_train"] ^ 1}, "x_train has sha256"),
    (lambda a: {k: v for k, v in a.items() if k != "y_train"}, "has no array y_train"),
])  # fmt: skip
def test_damaged_npz_of_ones_own_is_refused(away, monkeypatch, harm, message):
    arrays, _, _, root = away
    monkeypatch.setenv("RACING_DATA", str(root / "own"))
    np.savez_compressed(root / "own/tiny.npz", **harm(arrays))
    with pytest.raises(datasets.DamagedFile, match=message) as caught:
        datasets.load("tiny")
    assert "tiny.npz" in str(caught.value)


def test_colour_archive_is_decoded_and_turned_gray(away):
    """CIFAR-10's binary layout: a label, then red, green and blue planes; six files in a tar."""
    _, _, about, root = away
    rng = np.random.default_rng(1)
    records = rng.integers(0, 256, (6, 2, 3073)).astype(np.uint8)
    records[:, :, 0] = [[0, 1]] * 6
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as archive:
        for name, record in zip([*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"], records, strict=True):
            member = tarfile.TarInfo(f"cifar-10-batches-bin/{name}.bin")
            member.size = record.nbytes
            archive.addfile(member, io.BytesIO(record.tobytes()))
    _put({"tiny.tar.gz": content.getvalue()}, root / "cache/tiny")
    about |= {"files": {"tiny.tar.gz": hashlib.sha256(content.getvalue()).hexdigest()}, "counts": {"train": 10, "test": 2}}
    for name, form, shape in [("tiny", "cifar", [3, 32, 32]), ("tiny_gray", "cifar, gray", [32, 32])]:
        (root / f"data/{name}.json").write_text(json.dumps(about | {"format": form, "shape": shape}))
    colour, gray = datasets.load("tiny"), datasets.load("tiny_gray")
    assert np.array_equal((colour.x_test * 255).round().numpy(), records[5, :, 1:].reshape(2, 3, 32, 32))
    assert colour.y_train.tolist() == [0, 1] * 5
    luma = torch.einsum("nchw,c->nhw", colour.x_train, torch.tensor([0.299, 0.587, 0.114]))
    assert (gray.x_train - luma).abs().max() <= 0.5 / 255 + 1e-6


def test_test_images_alone_are_split_once_and_for_all():
    labels = np.repeat(np.arange(10), 1000).astype(np.uint8)
    arrays = {"x_test": np.arange(10_000), "y_test": labels}
    parts = on_disk._resplit(arrays, {"train": 8000, "test": 2000})
    assert np.bincount(parts["y_train"]).tolist() == [800] * 10 and np.bincount(parts["y_test"]).tolist() == [200] * 10
    assert sorted([*parts["x_train"], *parts["x_test"]]) == list(range(10_000))


@pytest.mark.parametrize("name", REMOTE)
def test_remote_sidecars_are_complete(name):
    about = datasets.describe(name)
    for fact in ("title", "homepage", "licence", "citation", "url", "folder"):
        assert about[fact]
    assert len(about["classes"]) == 10
    for sha256 in [*about["files"].values(), *about.get("content", {}).values()]:
        assert len(bytes.fromhex(sha256)) == 32
    assert set(about.get("reads", {}).values()) <= set(about["files"])


def test_listing_shows_what_is_there_and_fetch_says_what_is_wrong(away):
    _, files, _, root = away
    assert "tiny   missing   40 + 20   4×4       none" in CliRunner().invoke(cli, ["data"]).output
    _put(files, root / "cache/tiny")
    assert "tiny   cached " in CliRunner().invoke(cli, ["data", "fetch", "tiny"]).output
    wrong = CliRunner().invoke(cli, ["data", "fetch", "tinny"])
    assert wrong.exit_code == 2 and 'the nearest is "tiny"' in wrong.output
    assert CliRunner().invoke(cli, ["data", "frobnicate"]).exit_code == 2
    (root / "cache/tiny/x_test.gz").write_bytes(b"something else")
    harmed = CliRunner().invoke(cli, ["data"])
    assert harmed.exit_code == 2 and "tiny   damaged" in harmed.output and "x_test.gz is damaged" in harmed.output


def _build_script():
    spec = importlib.util.spec_from_file_location("build", on_disk.FOLDER / "build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
