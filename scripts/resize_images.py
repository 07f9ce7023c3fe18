"""`edgeconv resize`, for pictures and folders of them, from a checkout: the same arguments and options.

    python scripts/resize_images.py images/                            128 to 4096, beside the pictures
    python scripts/resize_images.py photos/ more/ -o sized --sizes 256:1024 --square

`python` is one that has edgeconv installed: .venv/bin/python after scripts/bootstrap.py.
"""

from __future__ import annotations

import sys

from edgeconv.cli import main

if __name__ == "__main__":
    sys.argv[1:1] = ["resize"]
    main()
