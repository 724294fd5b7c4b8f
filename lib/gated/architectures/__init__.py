"""The papers' own gated architectures, each as one batched tensor program, and what is known of them in closed form.

`routing`: M inputs and M outputs around one hidden pathway (The Neural Race Reduction, Section 4);
`rivals`: what competes with its shared code, and when it wins; `classifiers`: routing on real images
(Section 5). `pathways`: two-layer pathways side by side (Make Haste Slowly). `closed_forms`: exclusive-or and routing solved.
All are tested against the general engine of `lib.gated`.

    from lib.data import tasks
    from lib.gated.architectures import routing
    task = routing.shared_task(*tasks.routing_items((6.0, 4.0, 3.0)), domains=7)
    weights = routing.initial_weights(task, hidden=64, scale=0.2, seeds=10)
    run = routing.train(weights, task, routing.circulant(7, 4), step=0.16, steps=500)
"""

from lib.gated.architectures import classifiers, closed_forms, pathways, rivals, routing

__all__ = ["routing", "rivals", "pathways", "classifiers", "closed_forms"]
