"""Compares cycles of acquire and release of a free lock with other libraries, in interleaved rounds.

Usage: `cargo xtask bindings python --bench`, or python run.py [ROUNDS [SECONDS]]
"""

from __future__ import annotations

import asyncio
import atexit
import itertools
import socket
import statistics
import subprocess
import sys
import threading
import time
from typing import Any, Awaitable, Callable

import leasehold
import pottery
import redis
import redis.asyncio
import redis_lock
from leasehold import aio

ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 5
SECONDS = float(sys.argv[2]) if len(sys.argv) > 2 else 0.5
WAITERS = 200


def serve() -> str:
    """Starts a Redis server, and returns its URL."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = ["redis-server", "--port", str(port), "--save", "", "--dir", "/tmp"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    atexit.register(server.kill)
    assert server.stdout
    for line in server.stdout:
        if "Ready to accept connections" in line:
            break
    return f"redis://127.0.0.1:{port}"


URL = serve()

locks = leasehold.connect(URL)
client = redis.Redis.from_url(URL)
names = (f"bench/{number}" for number in itertools.count())

Cycle = Callable[[str], None]
AsyncCycle = Callable[[str], Awaitable[None]]


def leasehold_with(name: str) -> None:
    with locks.lock(name):
        pass


def redis_py_with(name: str) -> None:
    with client.lock(name, timeout=30):
        pass


def python_redis_lock_with(name: str) -> None:
    with redis_lock.Lock(client, name, expire=30):
        pass


def pottery_with(name: str) -> None:
    with pottery.Redlock(key=name, masters={client}, auto_release_time=30):
        pass


def threads(cycle: Cycle, count: int) -> float:
    """Returns the cycles per second of this many threads, each on its own lock."""
    done, start = [0] * count, threading.Barrier(count + 1)

    def work(number: int) -> None:
        name = next(names)
        cycle(name)
        start.wait()
        while time.perf_counter() < end[0]:
            cycle(name)
            done[number] += 1

    end = [0.0]
    workers = [threading.Thread(target=work, args=(number,)) for number in range(count)]
    for worker in workers:
        worker.start()
    began = time.perf_counter()
    end[0] = began + 3600
    start.wait()
    began = time.perf_counter()
    end[0] = began + SECONDS
    for worker in workers:
        worker.join()
    return sum(done) / (time.perf_counter() - began)


async def tasks(cycle: AsyncCycle, count: int) -> float:
    """Returns the cycles per second of this many tasks, each on its own lock."""
    done = 0
    task_names = [next(names) for _ in range(count)]
    await asyncio.gather(*(cycle(name) for name in task_names))
    began = time.perf_counter()

    async def work(name: str) -> None:
        nonlocal done
        while time.perf_counter() < began + SECONDS:
            await cycle(name)
            done += 1

    await asyncio.gather(*(work(name) for name in task_names))
    return done / (time.perf_counter() - began)


async def contended(cycle: AsyncCycle, count: int) -> float:
    """Returns the milliseconds per turn of this many tasks on one lock."""
    name = next(names)
    await cycle(name)
    began = time.perf_counter()
    await asyncio.gather(*(cycle(name) for _ in range(count)))
    return (time.perf_counter() - began) / count * 1000


class Bare(asyncio.Protocol):
    """Two plain commands and nothing else: no lock library can be faster with one task of asyncio."""

    SET = b"*6\r\n$3\r\nSET\r\n$4\r\nbare\r\n$1\r\nx\r\n$2\r\nNX\r\n$2\r\nPX\r\n$5\r\n30000\r\n"
    DEL = b"*2\r\n$3\r\nDEL\r\n$4\r\nbare\r\n"

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.answer.set_result(data)

    async def cycle(self, _name: str) -> None:
        for command in (self.SET, self.DEL):
            self.answer = asyncio.get_running_loop().create_future()
            self.transport.write(command)
            await self.answer


def on_loop(measure: Callable[..., Awaitable[float]], library: str, *arguments: Any) -> float:
    async def main() -> float:
        if library == "SET, DEL":
            port = int(URL.rpartition(":")[2])
            _, bare = await asyncio.get_running_loop().create_connection(Bare, "127.0.0.1", port)
            try:
                return await measure(bare.cycle, *arguments)
            finally:
                bare.transport.close()
        if library == "leasehold":
            async with aio.connect(URL) as own:

                async def cycle(name: str) -> None:
                    async with own.lock(name):
                        pass

                return await measure(cycle, *arguments)
        async with redis.asyncio.Redis.from_url(URL, max_connections=2 * WAITERS) as shared:

            async def cycle(name: str) -> None:
                if library == "redis-py":
                    async with shared.lock(name, timeout=30):
                        pass
                else:
                    lock = pottery.AIORedlock(key=name, masters={shared}, auto_release_time=30)
                    async with lock:
                        pass

            return await measure(cycle, *arguments)

    return asyncio.run(main())


CASES: dict[str, dict[str, Callable[[], float]]] = {
    "blocking, 1 thread": {
        "leasehold": lambda: threads(leasehold_with, 1),
        "redis-py": lambda: threads(redis_py_with, 1),
        "python-redis-lock": lambda: threads(python_redis_lock_with, 1),
        "pottery": lambda: threads(pottery_with, 1),
    },
    "blocking, 8 threads": {
        "leasehold": lambda: threads(leasehold_with, 8),
        "redis-py": lambda: threads(redis_py_with, 8),
        "python-redis-lock": lambda: threads(python_redis_lock_with, 8),
        "pottery": lambda: threads(pottery_with, 8),
    },
    "asyncio, 1 task": {
        library: (lambda library=library: on_loop(tasks, library, 1))
        for library in ("leasehold", "redis-py", "pottery", "SET, DEL")
    },
    "asyncio, 64 tasks": {
        library: (lambda library=library: on_loop(tasks, library, 64))
        for library in ("leasehold", "redis-py", "pottery")
    },
    f"asyncio, {WAITERS} tasks on one lock (ms a turn)": {
        library: (lambda library=library: on_loop(contended, library, WAITERS))
        for library in ("leasehold", "redis-py")
    },
}


def main() -> None:
    values: dict[tuple[str, str], list[float]] = {}
    for _ in range(ROUNDS):
        for case, libraries in CASES.items():
            for library, measure in libraries.items():
                values.setdefault((case, library), []).append(measure())
    print("| case | library | median | range | leasehold is |")
    print("|---|---|---|---|---|")
    for case, libraries in CASES.items():
        own = values[case, "leasehold"]
        for library in libraries:
            its = values[case, library]
            pairs = zip(own, its) if "ms" not in case else zip(its, own)
            ratio = statistics.median(a / b for a, b in pairs)
            shown = "" if library == "leasehold" else f"{ratio:.1f} × as fast"
            digits = ",.2f" if "ms" in case else ",.0f"
            median, least, most = (format(it, digits) for it in (statistics.median(its), min(its), max(its)))
            print(f"| {case} | {library} | {median} | {least}–{most} | {shown} |")


if __name__ == "__main__":
    main()
