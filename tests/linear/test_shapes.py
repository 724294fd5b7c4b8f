"""Wrong shapes, precisions and devices are answered in one sentence that names the axis."""

import numpy as np
import pytest
import torch

from lib.linear.shapes import WrongAxes, axes


@axes(w="outputs features", x="features items", y="outputs items", corners="items 4")
def predicted(w, x, y=None, *, corners=None):
    return w @ x


W, X, Y = torch.zeros(2, 3), torch.zeros(3, 5), torch.zeros(2, 5)


def test_what_fits_passes_whatever_its_kind():
    assert predicted(W, X, Y).shape == (2, 5)
    assert predicted(torch.zeros(7, 2, 3), X).shape == (7, 2, 5)  # ensembles in front are free
    assert isinstance(predicted(W.numpy(), X.numpy()), torch.Tensor)
    assert predicted([[1.0, 2.0]], [[3.0], [4.0]]).item() == 11
    assert predicted(W, X, corners=torch.zeros(5, 4)).shape == (2, 5)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: predicted(W, X.mT), r"x has 5 features \(shape \(5, 3\) as .*\), w has 3; are rows and columns swapped\?"),
        (lambda: predicted(W, X, torch.zeros(5, 2)), r"y has 5 outputs .*, w has 2; are rows and columns swapped\?"),
        (lambda: predicted(W, X, torch.zeros(2, 6)), r"y has 6 items .*, x has 5$"),
        (lambda: predicted(W, torch.zeros(3)), r"x has shape \(3,\); its last axes must be \(features, items\)"),
        (lambda: predicted(W, X.double()), r"x is float64 and w is float32; bring them to one precision, .* x.to\(w.dtype\)"),
        (lambda: predicted(W, X.to("meta")), "x is on meta and w on cpu; move one of them"),
        (lambda: predicted(W, "x"), "x must be a tensor or an array, not str"),
        (lambda: predicted(W, X, corners=torch.zeros(5, 3)), r"corners has an axis of 3 .*, there must be 4"),
        (lambda: predicted(np.zeros((2, 4)), X.double()), r"x has 3 features"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_one_sentence(call, sentence):
    with pytest.raises(WrongAxes, match=sentence) as caught:
        call()
    assert "\n" not in str(caught.value) and str(caught.value).startswith("predicted: ")


def test_the_decorated_function_keeps_its_signature_and_refuses_unknown_names():
    assert predicted.__name__ == "predicted" and "corners" in predicted.__wrapped__.__kwdefaults__
    with pytest.raises(TypeError, match="has no argument z"):
        axes(z="items")(lambda x: x)
