"""A client of kazoo: reads commands, and answers each with a line."""

import sys

from kazoo.client import KazooClient
from kazoo.exceptions import LockTimeout, NoNodeError
from kazoo.recipe.lock import Lock

client = KazooClient(hosts=sys.argv[1], timeout=8)
client.start()
lock = Lock(client, sys.argv[2], extra_lock_patterns=["-lock-"])
for line in sys.stdin:
    command, *words = line.split()
    if command == "acquire":
        try:
            held = lock.acquire(timeout=int(words[0]) / 1000)
        except LockTimeout:
            held = False
        answer = "held" if held else "busy"
    elif command == "release":
        lock.release()
        answer = "free"
    else:
        # Writes to a resource, if the node of a lock is still there.
        node, resource, text = words
        client.ensure_path(resource)
        transaction = client.transaction()
        transaction.check(node, -1)
        transaction.set_data(resource, text.encode())
        results = transaction.commit()
        answer = "fenced" if any(isinstance(it, NoNodeError) for it in results) else "written"
    print(answer, flush=True)
