"""Adam's steps on tensors in place, by the fused operation that `torch.optim.Adam` calls too.

The optimiser itself brings torch's compiler along when it is first made, which takes longer than some of our trainings.
"""

import torch
from torch import Tensor


class Adam:
    """Adam for `parameters`, changed in place: what `torch.optim.Adam` does with a rate that may be another at each step."""

    def __init__(self, parameters: list[Tensor], epsilon: float):
        self.parameters, self.epsilon = [p.detach() for p in parameters], epsilon  # views: the numbers are the same
        self.means, self.squares = ([torch.zeros_like(p) for p in self.parameters] for _ in range(2))
        self.steps = [torch.zeros((), device=p.device) for p in parameters]

    def step(self, gradients: list[Tensor], rate: float) -> None:
        """One step along these gradients, one for each of the parameters."""
        pairs = zip(self.parameters, gradients, strict=True)  # the operation believes that both lie in memory in the same order
        gradients = [g if g.stride() == p.stride() else torch.empty_like(p).copy_(g) for p, g in pairs]
        with torch.no_grad():
            torch._foreach_add_(self.steps, 1)
            torch._fused_adam_(
                self.parameters, gradients, self.means, self.squares, [], self.steps,
                lr=rate, beta1=0.9, beta2=0.999, weight_decay=0.0, eps=self.epsilon, amsgrad=False, maximize=False,
            )  # fmt: skip
