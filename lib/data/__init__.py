"""The papers' synthetic tasks and the real images.

`tasks` makes the small worlds of the five papers; `datasets` loads images, bundled or downloaded, every byte checked
(`files`); `image_domains` makes many domains out of one set of images, some through frozen `front_ends`.

    from lib.data import datasets, tasks
    x, y = tasks.separability(margin=0.5)
    digits = datasets.load("mnist", train=100, test=50)
    print(x.shape, y.shape, digits)
"""

from lib import door

__getattr__, __dir__, __all__ = door(
    __name__,
    {
        "tasks": (),
        "datasets": (),
        "files": (),
        "image_domains": (),
        "front_ends": (),
    },
)
