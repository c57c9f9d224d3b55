// Calls that end early by an AbortSignal.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { connect } from "leasehold";
import { serve } from "./support/servers.mjs";
import { until } from "./support/until.mjs";

let locks;
before(async () => {
  locks = connect(await serve());
});
after(() => locks.close());

test("aborted wait leaves the queue", async () => {
  const guard = await locks.lock("wait");
  const controller = new AbortController();
  const waiting = locks.lock("wait", { signal: controller.signal });
  await until(async () => (await locks.waiters("wait")).length === 1, "the call waits");
  const reason = new Error("no longer needed");
  controller.abort(reason);
  await assert.rejects(waiting, reason);
  await until(async () => (await locks.waiters("wait")).length === 0, "the entry is gone");
  await guard.release();
});

test("timeout signal ends the wait", async () => {
  const guard = await locks.lock("timeout");
  await assert.rejects(locks.lock("timeout", { signal: AbortSignal.timeout(50) }), { name: "TimeoutError" });
  await guard.release();
});

test("aborted signal starts nothing", async () => {
  await assert.rejects(locks.lock("aborted", { signal: AbortSignal.abort() }), { name: "AbortError" });
  assert.deepEqual(await locks.holders("aborted"), []);
});

test("abort after the grant does nothing", async () => {
  const controller = new AbortController();
  const guard = await locks.lock("late", { signal: controller.signal });
  controller.abort();
  assert.equal(guard.valid, true);
  await guard.release();
});

test("waits for once, elections, and sets can be aborted", async () => {
  const guard = await locks.lock("other");
  const controller = new AbortController();
  const calls = [
    locks.lockAll(["other", "more"], { signal: controller.signal }),
    locks.once("other").run(async () => "", { signal: controller.signal }),
    locks.election("other").campaign({ signal: controller.signal }),
  ];
  await until(async () => (await locks.waiters("other")).length === 3, "all calls wait");
  controller.abort();
  for (const call of calls) await assert.rejects(call, { name: "AbortError" });
  await guard.release();
});

test("nothing stays held after 500 aborts at random moments", async () => {
  const names = Array.from({ length: 10 }, (_, number) => `storm-${number}`);
  let granted = 0;
  const attempt = async (number) => {
    const controller = new AbortController();
    const call = locks.lock(names[number % names.length], { signal: controller.signal });
    setTimeout(() => controller.abort(), Math.random() * 4);
    try {
      await (await call).release();
      granted += 1;
    } catch (error) {
      assert.equal(error.name, "AbortError");
    }
  };
  for (let round = 0; round < 10; round++) {
    await Promise.all(Array.from({ length: 50 }, (_, number) => attempt(number)));
  }
  assert.ok(granted > 0 && granted < 500, `${granted} of 500 were granted`);
  await until(async () => (await locks.listLocks("storm-*")).locks.length === 0, "all locks are free");
});
