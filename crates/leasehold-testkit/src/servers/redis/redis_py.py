"""The other side of a lock: redis-py's Lock, told what to do line by line."""

import random
import sys
import time

import redis

server = redis.Redis(port=int(sys.argv[1]))
locks = {}


def acquire(name, timeout):
    locks[name] = server.lock(name, timeout=float(timeout))
    return locks[name].acquire(blocking=False)


def release(name):
    locks.pop(name).release()
    return True


def work(name, counter, seconds, pause):
    """Takes the lock again and again, and counts under it in steps that show whoever is beside it."""
    lock = server.lock(name, timeout=60)
    waits = []
    end = time.monotonic() + float(seconds)
    while time.monotonic() < end:
        began = time.monotonic()
        lock.acquire()
        waits.append(time.monotonic() - began)
        seen = int(server.get(counter) or 0)
        time.sleep(random.uniform(0.005, 0.020))
        server.set(counter, seen + 1)
        lock.release()
        time.sleep(float(pause))
    return " ".join(map(str, waits))


verbs = {"acquire": acquire, "release": release, "work": work}

for line in sys.stdin:
    verb, *arguments = line.split()
    print(verbs[verb](*arguments), flush=True)
