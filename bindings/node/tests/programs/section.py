"""Enters the section of section.mjs, from Python."""

import os
import sys

import leasehold

url, folder, turns = sys.argv[1:]
with leasehold.connect(url) as locks:
    for _ in range(int(turns)):
        with locks.lock("section", ttl=3) as guard:
            open(f"{folder}/inside", "x").close()  # Fails if another process is inside.
            with open(f"{folder}/count") as file:
                count, fence = map(int, file.read().split())
            assert guard.fence > fence, (guard.fence, fence)
            with open(f"{folder}/count", "w") as file:
                file.write(f"{count + 1} {guard.fence}\n")
            os.unlink(f"{folder}/inside")
