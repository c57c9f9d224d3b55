"""The peers of Python as subjects of the benchmarks: obey the orders of worker_process.rs, line by line."""

import json
import math
import os
import random
import sys
import threading
import time

TTL = 30
part, settings, key, keys, waiters, hold, away, *ports = sys.argv[1:]
hold, away, waiters = int(hold) / 1e6, int(away) / 1e6, int(waiters)

# `default`, or the delay between two attempts in milliseconds.
pace = {"sleep": int(settings) / 1000} if settings.isdigit() else {}
now = time.perf_counter_ns


if part == "kazoo":
    from kazoo.client import KazooClient

    client = KazooClient(hosts=f"127.0.0.1:{ports[0]}", timeout=TTL)
    client.start()
else:
    import redis

    clients = [redis.Redis(port=int(port)) for port in ports]


class RedisPy:
    def __init__(self, name):
        self.lock = clients[0].lock(name, timeout=TTL, **pace)

    def acquire(self, blocking=True):
        return self.lock.acquire(blocking=blocking)

    def release(self):
        self.lock.release()


class PythonRedisLock:
    def __init__(self, name):
        self.name = name
        self.lock = None

    def acquire(self, blocking=True):
        import redis_lock

        # One that was released is not to be used again: each has an identity.
        lock = redis_lock.Lock(clients[0], self.name, expire=TTL)
        self.lock = lock if lock.acquire(blocking=blocking) else None
        return self.lock is not None

    def release(self):
        self.lock.release()


class Kazoo:
    """All locks of one client, which has one session."""

    def __init__(self, name):
        self.lock = client.Lock(f"/kazoo/{name}")

    def acquire(self, blocking=True):
        return self.lock.acquire(blocking=blocking)

    def release(self):
        self.lock.release()


make = {"redis-py": RedisPy, "python-redis-lock": PythonRedisLock, "kazoo": Kazoo}[part]
names = [f"{key}-{waiter + 1}" if keys == "each" else key for waiter in range(waiters)]
handles = [make(name) for name in names]
# What proves that the lock is real.
first, other = make(key), make(key)
sections = []
pending = {}


def about(span):
    """About that long: who comes back after one and the same time falls in step with others. Ten different
    pauses in any order, and then again: so all clients pause for the same time in total."""
    while True:
        yield from random.sample([span * (0.55 + step / 10) for step in range(10)], 10)


def contend(waiter, handle):
    pauses = about(away)
    while True:
        asked = now()
        pending[waiter] = asked
        handle.acquire()
        acquired = now()
        del pending[waiter]
        time.sleep(hold)
        releasing = now()
        sections.append((waiter, asked, acquired, releasing))
        handle.release()
        time.sleep(next(pauses))


def start():
    for waiter, handle in enumerate(handles):
        threading.Thread(target=contend, args=(waiter, handle), daemon=True).start()
    return "started"


def cycle(span):
    """All handles, for a span in milliseconds."""
    cycles, failures = [], []
    began = now()

    def one(handle):
        while now() - began < int(span) * 1e6:
            asked = now()
            try:
                if not handle.acquire():
                    raise RuntimeError("busy")
                handle.release()
                cycles.append(now() - asked)
            except Exception as error:
                failures.append(str(error))

    if len(handles) == 1:
        one(handles[0])
    else:
        threads = [threading.Thread(target=one, args=(handle,)) for handle in handles]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    figures = {"cycles": len(cycles), "seconds": (now() - began) / 1e9}
    cycles.sort()
    for percent in (50, 99):
        rank = max(1, math.ceil(len(cycles) * percent / 100))
        figures[f"cycle_p{percent}"] = cycles[rank - 1] / 1000 if cycles else 0
    figures["longest"] = cycles[-1] / 1000 if cycles else 0
    figures["failed"] = len(failures)
    return json.dumps({**figures, "why": failures[-1] if failures else ""})


def second():
    if other.acquire(blocking=False):
        other.release()
        return "granted"
    return "denied"


def resident():
    """In MiB."""
    with open("/proc/self/statm") as pages:
        return int(pages.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def take_all():
    before = resident()
    for handle in handles:
        handle.acquire()
    return json.dumps({"resident_before": before, "resident": resident()})


def report():
    return json.dumps({"longest": 0, "least_left": 0, "lost": 0})


def take():
    first.acquire()
    return "taken"


def give():
    first.release()
    return "given"


def finish():
    waits = list(pending.values())
    return json.dumps({"sections": list(sections), "pending": waits, "gave_up": 0, "why": ""})


orders = {
    "take": take,
    "second": second,
    "give": give,
    "start": start,
    "mark": now,
    "cycle-for": cycle,
    "finish": finish,
    "hold": take_all,
    "report": report,
}
for line in iter(sys.stdin.readline, ""):
    order, *numbers = line.split()
    print(orders[order](*numbers), flush=True)
os._exit(0)
