"""`manage.py nightly`: run it from the cron of every machine, and one of them does the work."""

import leasehold
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError


class Command(BaseCommand):
    help = "Cleans up, on one machine at a time"

    def handle(self, *args, **options):
        with leasehold.connect(settings.LOCKS, label="nightly") as locks:
            try:
                with locks.lock("nightly", wait=0) as guard:
                    self.stdout.write(f"cleaning up with fence {guard.fence}")
                    guard.ensure(5)  # before a step that takes up to 5 s
            except leasehold.Busy as busy:
                raise CommandError(f"another machine is at it: {busy}") from busy
