"""What tests share: servers, waiting for conditions, and programs of their own."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Callable, Iterator

LIMIT = 20.0
"""How long a condition may take on a busy machine."""


def wait_until(condition: Callable[[], Any], limit: float = LIMIT) -> Any:
    """Returns the first true value of `condition`."""
    end = time.monotonic() + limit
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.005)
    raise AssertionError(f"not within {limit} s: {condition}")


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


class Redis:
    """A Redis server with a folder of its own."""

    def __init__(self) -> None:
        program = shutil.which("redis-server")
        assert program, "redis-server is not in PATH; `cargo xtask setup` provides it"
        self.port = free_port()
        self.folder = tempfile.mkdtemp(prefix="leasehold-redis-")
        arguments = ["--port", str(self.port), "--save", "", "--dir", self.folder]
        self.process = subprocess.Popen([program, *arguments], stdout=subprocess.DEVNULL)
        wait_until(self._answers)
        self.url = f"redis://127.0.0.1:{self.port}"

    def _answers(self) -> bool:
        assert self.process.poll() is None, "redis-server ended"
        try:
            return self.command("PING").startswith("+PONG")
        except OSError:
            return False

    def command(self, *words: str) -> str:
        """Sends a command, and returns the beginning of the raw answer."""
        text = f"*{len(words)}\r\n" + "".join(f"${len(it.encode())}\r\n{it}\r\n" for it in words)
        with socket.create_connection(("127.0.0.1", self.port), timeout=LIMIT) as connection:
            connection.sendall(text.encode())
            return connection.recv(65536).decode()

    def value(self, name: str) -> str | None:
        """Returns the value of a key."""
        answer = self.command("GET", name)
        return None if answer.startswith("$-1") else answer.split("\r\n")[1]

    def freeze(self) -> None:
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


class Program:
    """A Python program of a test, in a process of its own."""

    def __init__(self, text: str, *arguments: str, **environment: str) -> None:
        command = [sys.executable, "-W", "default", "-c", text, *arguments]
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parent,
            env={**os.environ, "PYTHONUNBUFFERED": "1", **environment},
        )

    def line(self) -> str:
        """Returns the next line that it prints."""
        assert self.process.stdout
        line = self.process.stdout.readline()
        assert line, self.process.stderr and self.process.stderr.read()
        return line.strip()

    def tell(self, line: str = "") -> None:
        assert self.process.stdin
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def end(self, limit: float = 60.0) -> tuple[int, str, str]:
        """Waits for its end, and returns the exit code, the output and the errors."""
        try:
            output, errors = self.process.communicate(timeout=limit)
        finally:
            self.process.kill()
        return self.process.returncode, output, errors

    def __enter__(self) -> Program:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            if pipe:
                pipe.close()


def run(text: str, *arguments: str, **environment: str) -> str:
    """Runs a program that must succeed without a message, and returns what it prints."""
    code, output, errors = Program(text, *arguments, **environment).end()
    assert (code, errors) == (0, ""), errors
    return output


class Servers:
    """A store that `leasehold-servers` starts: postgres, etcd or zookeeper."""

    def __init__(self, kind: str) -> None:
        self.process = subprocess.Popen(
            [os.environ["LEASEHOLD_TEST_SERVERS"], kind],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout
        for line in self.process.stdout:
            word, _, self.url = line.strip().partition("export LEASEHOLD_STORE=")
            if self.url:
                return
        raise AssertionError(f"{kind} did not start")

    def stop(self) -> None:
        self.process.communicate()  # it ends with its standard input


def stores() -> Iterator[str]:
    """Returns the stores that the tests can start."""
    yield from ("redis", "file")
    if "LEASEHOLD_TEST_SERVERS" in os.environ:
        yield from ("postgres", "etcd", "zookeeper")
