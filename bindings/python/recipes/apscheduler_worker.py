"""APScheduler in every worker, where one of them runs the jobs. The next one takes over if it ends."""

import os
import threading

import leasehold
from apscheduler.schedulers.background import BackgroundScheduler

locks = leasehold.connect(os.environ["LOCKS"])


def tick(fence: int) -> None:
    print("tick", os.getpid(), fence, flush=True)


def run_jobs_while_leading() -> None:
    with locks.election("jobs", ttl=10) as leader:
        lost = threading.Event()
        leader.on_lost(lambda reason: lost.set())
        scheduler = BackgroundScheduler(timezone="UTC")
        scheduler.add_job(tick, "interval", seconds=0.2, args=[leader.fence])
        scheduler.start()
        lost.wait()
        scheduler.shutdown()


if __name__ == "__main__":
    while True:
        try:
            run_jobs_while_leading()
        except leasehold.Lost:
            pass  # a candidate again
