"""Figures: colours that colour-blind readers tell apart, text that can be read, sharp pictures that stay small."""

import io
import itertools

import numpy as np
import pytest
from PIL import Image

from lib import plots
from lib.book import pictures

# How colours look to readers without green (deuteranopia) or red (protanopia) cones; Machado et al. (2009), in linear RGB.
EYES = {
    "all cones": np.eye(3),
    "no green": np.array([[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]]),
    "no red": np.array([[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]),
}
TO_XYZ = np.array([[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.072175], [0.0193339, 0.119192, 0.9503041]])
NETWORKS = ("linear", "relu", "gated", "bias", "tanh", "sine", "gaussian")


def lab(colour: str, eye: np.ndarray) -> np.ndarray:
    """A colour as an eye sees it, in CIELAB, where distances are differences that one notices."""
    rgb = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    xyz = TO_XYZ @ np.clip(eye @ linear, 0, 1) / np.array([0.95047, 1, 1.08883])
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("eye", EYES)
def test_networks_have_colours_that_differ_for_every_eye(eye):
    for a, b in itertools.combinations(NETWORKS, 2):
        distance = np.linalg.norm(lab(plots.COLOURS[a], EYES[eye]) - lab(plots.COLOURS[b], EYES[eye]))
        assert distance > 15, f"{a} and {b} look alike ({distance:.0f}) with {eye}"


@pytest.mark.parametrize("name", plots.COLOURS)
def test_text_in_any_colour_can_be_read(name):
    assert 1.05 / (plots.luminance(plots.ink(plots.COLOURS[name])) + 0.05) >= 4.5
    assert plots.ink("#000000") == (0, 0, 0)  # what is dark enough stays


@pytest.mark.parametrize("scale", ["linear", "log"])
def test_labels_of_lines_do_not_touch_and_stay_inside(scale):
    fig, ax = plots.panels()
    for end in (1.0, 1.02, 30.0):
        ax.plot([1, 2, 5], [1, 3, end], label=f"{end}")
    ax.set(yscale=scale)
    plots.label_lines(ax)
    heights = sorted(text.get_position()[1] for text in ax.texts)
    plots.plt.close(fig)
    assert len(heights) == 3 and min(np.diff(heights)) >= 0.064 and heights[0] >= 0 and heights[-1] <= 1
    assert ax.get_legend() is None


# --- pictures that are kept in git -----------------------------------------------------------------------------------


def test_pictures_get_smaller_but_look_the_same():
    fig, ax = plots.panels(height=2)
    ax.imshow(np.random.default_rng(0).normal(size=(40, 60)))
    plots.theory(ax, [0, 59], [0, 39])
    text = io.BytesIO()
    fig.savefig(text, dpi=220)
    plots.plt.close(fig)
    before = text.getvalue()
    after = pictures.smaller(before)
    assert len(after) < 0.7 * len(before) and pictures.smaller(after) == after
    old, new = (np.asarray(Image.open(io.BytesIO(one)).convert("RGB"), dtype=float) for one in (before, after))
    assert old.shape == new.shape and np.abs(old - new).mean() < 2 and pictures.width(before) == old.shape[1]
