"""The other side of a lock: redis-py's Lock, told what to do line by line."""

import sys

import redis

server = redis.Redis(port=int(sys.argv[1]))
locks = {}

for line in sys.stdin:
    verb, name = line.split()
    if verb == "acquire":
        locks[name] = server.lock(name, timeout=60)
        answer = locks[name].acquire(blocking=False)
    elif verb == "release":
        locks.pop(name).release()
        answer = True
    else:
        raise SystemExit(f"unknown verb {verb}")
    print(answer, flush=True)
