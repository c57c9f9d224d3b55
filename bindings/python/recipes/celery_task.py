"""A Celery task that runs in one worker at a time, however often it is sent."""

import os

import leasehold
from celery import Celery

from reports import write_report

app = Celery("tasks", broker=os.environ["BROKER"], backend=os.environ["BROKER"])

# Opens no connection yet, so the pool may fork its workers after this line.
locks = leasehold.connect(os.environ["LOCKS"])


@app.task
def report(month: str) -> str:
    try:
        with locks.lock(f"report/{month}", wait=0) as guard:
            # Renewed as long as it takes. The database refuses a smaller fence.
            return write_report(month, fence=guard.fence)
    except leasehold.Busy:
        return "another worker writes it"
