"""The gradients of full training, y = A relu(W x + b) + c: by hand, or by automatic differentiation for products in 16 bits."""

import torch
from torch import Tensor
from torch.nn import functional

from lib.biases.networks import losses, towards_outputs


class Full:
    """A single network all of whose `parameters` w (pixels, units), b, a (classes, units) and c are trained on batches.

    Input weights have their units along rows: gradients whose rows are an odd number of pixels long take twice the time.
    """

    def __init__(self, w: Tensor, a: Tensor):
        self.parameters = w.T.contiguous(), w.new_zeros(len(w)), a.clone(), a.new_zeros(len(a))
        self.gradients = [torch.empty_like(p) for p in self.parameters]
        self.room = w.new_empty(2, 0, len(w))  # activity of the units, and the gradient towards it

    def by_hand(self, x: Tensor, y: Tensor, loss: str) -> tuple[Tensor, list[Tensor]]:
        """The loss (1,) on images x (items, pixels), and its gradients, which are overwritten by those of the next batch."""
        w, b, a, c = self.parameters
        if len(x) != self.room.shape[1]:
            self.room = w.new_empty(2, len(x), len(b))
        h, back = self.room
        torch.addmm(b, x, w, out=h).relu_()
        now, error = towards_outputs(torch.addmm(c, h, a.T)[None], y, loss)
        error = error[0].div_(len(x))
        torch.mm(error, a, out=back)
        torch.ops.aten.threshold_backward.grad_input(back, h, 0, grad_input=back)
        towards_w, towards_b, towards_a, towards_c = self.gradients
        torch.mm(x.T, back, out=towards_w)
        torch.sum(back, 0, out=towards_b)
        torch.mm(error.T, h, out=towards_a)
        torch.sum(error, 0, out=towards_c)
        return now, self.gradients

    def by_autograd(self, x: Tensor, y: Tensor, loss: str, short: bool = True) -> tuple[Tensor, list[Tensor]]:
        """The same by automatic differentiation, with products of matrices in 16 bits if they are to be `short`."""
        w, b, a, c = leaves = [p.detach().requires_grad_() for p in self.parameters]
        with torch.enable_grad():
            with torch.autocast(w.device.type, torch.bfloat16, enabled=short):
                outputs = functional.linear(functional.linear(x, w.T, b).relu_(), a, c)[None]
            now = losses(outputs.to(w.dtype), y, loss)
            return now.detach(), list(torch.autograd.grad(now.sum(), leaves))
