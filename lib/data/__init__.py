"""The papers' synthetic tasks and the real images.

`tasks` makes the small worlds of the five papers, of any size; `datasets` loads images, bundled or downloaded, every byte
checked (`files`); `image_domains` makes many domains out of one set of images, some through frozen `front_ends`.

Items are columns, x (features, items), in `tasks` and in the domains; images come in thousands and are rows, (items,
height, width). `as_rows` turns columns into float32 rows.

    from lib import data
    from lib.data import tasks
    x, y = tasks.hierarchy(9, branching=3)                      # columns, float64
    print(x.shape, y.shape, data.as_rows(y).shape)
    print(data.load("mnist", train=100, test=50))
"""

from lib.data import datasets, files, front_ends, image_domains, tasks
from lib.data.datasets import Images, camera, load
from lib.data.files import DamagedFile, MissingFile
from lib.data.front_ends import front_end
from lib.data.image_domains import Domains, featured_domains, permuted_domains, rotated_domains
from lib.data.tasks import as_rows

__all__ = ["tasks", "as_rows", "datasets", "Images", "load", "camera", "files", "DamagedFile", "MissingFile"]
__all__ += ["image_domains", "Domains", "permuted_domains", "rotated_domains", "featured_domains", "front_ends", "front_end"]
