// Guards that the garbage collector finds.
import assert from "node:assert/strict";
import { once } from "node:events";
import { after, before, test } from "node:test";
import { Worker } from "node:worker_threads";
import { connect } from "leasehold";
import { run } from "./support/programs.mjs";
import { serve } from "./support/servers.mjs";
import { until } from "./support/until.mjs";

let url, locks;
before(async () => {
  url = await serve();
  locks = connect(url);
});
after(() => locks.close());

test("collected guard stays held, and a warning says so", async () => {
  const program = run("forgets.mjs", url, "forgotten");
  assert.deepEqual(await program.exit, { code: 0, signal: null });
  const text = (name) => `the guard of lock "${name}" was garbage-collected before its release`;
  assert.equal(
    program.out,
    `LeaseholdWarning LEASEHOLD_UNRELEASED true\n${text("forgotten")}\n${text("forgotten, watched")}\n`,
  );
  const guard = await until(() => locks.tryLock("forgotten"), "the lock of the ended process is free", 5000);
  await guard.release();
});

test("collected guard of a worker is free after its end", async () => {
  const path = new URL("programs/forgets.mjs", import.meta.url);
  const worker = new Worker(path, { workerData: [url, "of a worker"], stdout: true, stderr: true });
  assert.deepEqual(await once(worker, "message"), ["collected"]);
  assert.equal(await locks.tryLock("of a worker"), undefined);
  await worker.terminate();
  const guard = await until(() => locks.tryLock("of a worker"), "the lock of the worker is free", 5000);
  await guard.release();
});
