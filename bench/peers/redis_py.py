"""redis-py as a subject of the benchmarks: obeys the orders of worker_process.rs, line by line."""

import os
import sys
import threading
import time

import redis

TTL = 30
settings, key, waiters, hold, away, port = sys.argv[1:]
hold, away = int(hold) / 1e6, int(away) / 1e6

# `default`, or the delay between two attempts in milliseconds.
pace = {} if settings == "default" else {"sleep": int(settings) / 1000}
client = redis.Redis(port=int(port))
now = time.perf_counter_ns

sections = []
pending = {}


def lock():
    return client.lock(key, timeout=TTL, **pace)


def contend(waiter):
    while True:
        asked = now()
        pending[waiter] = asked
        held = lock()
        held.acquire()
        acquired = now()
        del pending[waiter]
        time.sleep(hold)
        releasing = now()
        sections.append((waiter, asked, acquired, releasing))
        held.release()
        time.sleep(away)


def second():
    other = lock()
    if other.acquire(blocking=False):
        other.release()
        return "granted"
    return "denied"


def start():
    for waiter in range(int(waiters)):
        threading.Thread(target=contend, args=(waiter,), daemon=True).start()
    return "started"


def finish():
    lines = ["section %d %d %d %d" % section for section in list(sections)]
    lines += ["pending %d %d" % wait for wait in list(pending.items())]
    return "\n".join([*lines, "gave-up 0 ", "finished"])


mine = lock()


def take():
    mine.acquire()
    return "taken"


def give():
    mine.release()
    return "given"


orders = {
    "take": take,
    "second": second,
    "give": give,
    "start": start,
    "mark": lambda: f"mark {now()}",
    "finish": finish,
}
for order in iter(sys.stdin.readline, ""):
    print(orders[order.strip()](), flush=True)
os._exit(0)
