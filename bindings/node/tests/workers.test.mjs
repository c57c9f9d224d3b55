// Worker threads that end, or are terminated, with held locks and calls that wait.
import assert from "node:assert/strict";
import { once } from "node:events";
import { after, before, test } from "node:test";
import { Worker } from "node:worker_threads";
import { connect } from "leasehold";
import { serve } from "./support/servers.mjs";
import { until } from "./support/until.mjs";

let url, locks;
before(async () => {
  url = await serve();
  locks = connect(url);
});
after(() => locks.close());

test("locks of 20 workers are free after they end", async () => {
  for (let number = 0; number < 20; number++) {
    const data = { url, name: `worker-${number}`, waits: number % 4 < 2, stays: number % 2 === 1 };
    const worker = new Worker(new URL("programs/worker.mjs", import.meta.url), { workerData: data });
    const ended = once(worker, "exit");
    const [fence] = await once(worker, "message");
    assert.ok(fence > 0);
    if (data.stays) {
      if (data.waits) await until(async () => (await locks.waiters(data.name)).length === 1, "its call waits");
      await worker.terminate();
    }
    await ended;
  }
  for (let number = 0; number < 20; number++) {
    const guard = await until(() => locks.tryLock(`worker-${number}`), `the lock of worker ${number} is free`, 5000);
    await guard.release();
  }
});

test("main thread is not disturbed by the end of a worker", async () => {
  const guard = await locks.lock("main", { ttl: 2000 });
  const worker = new Worker(new URL("programs/worker.mjs", import.meta.url), {
    workerData: { url, name: "other", stays: true },
  });
  await once(worker, "message");
  await worker.terminate();
  await guard.renew();
  assert.equal(await guard.release(), "released");
});
