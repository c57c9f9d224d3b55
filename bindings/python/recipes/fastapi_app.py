"""A FastAPI service with one leader among its replicas, which runs the background work."""

import asyncio
import contextlib
import os

import leasehold
from fastapi import FastAPI
from leasehold import aio


async def lead(app: FastAPI, locks: aio.Client) -> None:
    while True:
        try:
            async with locks.election("scheduler", value=os.environ.get("ADDRESS", "")) as leader:
                app.state.fence = leader.fence
                await app.state.work(leader.fence)  # cancelled if the leadership is lost
        except leasehold.Lost:
            pass  # a candidate again
        finally:
            app.state.fence = None


@contextlib.asynccontextmanager
async def lifespan(app: FastAPI):
    async with aio.connect(os.environ["LOCKS"]) as locks:
        app.state.locks = locks
        task = asyncio.create_task(lead(app, locks))
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def work(fence: int) -> None:
    await asyncio.Event().wait()


app = FastAPI(lifespan=lifespan)
app.state.fence = None
app.state.work = work


@app.get("/leader")
async def leader() -> dict[str, object]:
    seen = await app.state.locks.election("scheduler").leader()
    return {"leader": seen and seen.value, "this": app.state.fence is not None}
