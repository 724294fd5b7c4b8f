"""Pictures in notebooks: sharp, and yet small enough to be kept in the history."""

import base64
import io
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PIL import Image

COLOURS, COMMON = 256, 128  # of a palette, and how many of them are taken from the picture as they are


def smaller(png: bytes) -> bytes:
    """The same picture with at most 256 colours, on white: a third of the size, and no eye sees the difference.

    A picture that would not shrink, or that is one of these already, stays as it is, so that doing it twice changes nothing.
    """
    from PIL import Image

    picture = Image.open(io.BytesIO(png))
    if picture.mode == "P":
        return png
    canvas = Image.new("RGB", picture.size, "white")
    canvas.paste(picture, mask=picture.getchannel("A") if picture.mode == "RGBA" else None)
    text = io.BytesIO()
    quantised(canvas).save(text, "PNG")
    return text.getvalue() if text.tell() < len(png) else png


def quantised(canvas: "Image.Image") -> "Image.Image":
    """An RGB picture with a palette: its most common colours as they are, the others by the median cut of Pillow.

    The cut looks at each of the others a few times at most, not at every dot: a figure is mostly paper.
    """
    import numpy as np
    import pandas as pd
    from PIL import Image

    dots = np.asarray(canvas.convert("RGBA")).view(np.uint32)[..., 0]
    codes, found = pd.factorize(dots.ravel())
    count, colours = np.bincount(codes), found.view(np.uint8).reshape(-1, 4)[:, :3]
    common, rare = np.split(np.argsort(-count, kind="stable"), [COMMON])
    place = np.empty(len(colours), np.uint8)
    place[common], palette = np.arange(len(common)), colours[common]
    if len(rare):
        looks = np.repeat(rare, np.minimum(count[rare], 50))
        method = {"method": Image.Quantize.MEDIANCUT, "dither": Image.Dither.NONE}
        cut = Image.fromarray(colours[looks][None]).quantize(COLOURS - COMMON, **method)
        place[looks] = COMMON + np.asarray(cut)[0]
        palette = np.concatenate([palette, np.array(cut.getpalette(), np.uint8).reshape(-1, 3)[: COLOURS - COMMON]])
    picture = Image.fromarray(place[codes].reshape(dots.shape)).convert("P")
    picture.putpalette(palette.tobytes())
    return picture


def shrink(notebook: dict) -> None:
    """Make all PNG pictures of a notebook smaller, in place."""
    for cell in notebook["cells"]:
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            if "image/png" in data:
                shown = data["image/png"] if isinstance(data["image/png"], str) else "".join(data["image/png"])
                data["image/png"] = base64.b64encode(smaller(base64.b64decode(shown))).decode()


def width(png: bytes) -> int:
    """The width of a PNG picture in dots, from its header."""
    return int.from_bytes(png[16:20], "big")
