// Locks, permits, and sets.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { BusyError, ClosedError, connect, LeaseholdError } from "leasehold";
import { serve } from "./support/servers.mjs";
import { until } from "./support/until.mjs";

let locks, others;
before(async () => {
  const url = await serve();
  locks = connect(url);
  others = connect(url, { label: "others" });
});
after(async () => {
  await Promise.all([locks.close(), others.close()]);
});

test("held lock is busy for others", async () => {
  const guard = await locks.lock("busy");
  assert.equal(guard.name, "busy");
  assert.equal(guard.valid, true);
  assert.equal(guard.lostReason, undefined);
  assert.ok(guard.remaining > 0 && guard.remaining <= 30_000);
  assert.equal(await others.tryLock("busy"), undefined);
  await assert.rejects(others.lock("busy", { wait: 50 }), (error) => {
    assert.ok(error instanceof BusyError && error instanceof LeaseholdError);
    assert.equal(error.name, "BusyError");
    assert.equal(error.code, "LEASEHOLD_BUSY");
    assert.equal(error.lock, "busy");
    assert.equal(error.retryable, true);
    assert.match(error.stack, /locks\.test\.mjs/, "the stack has the caller");
    return true;
  });
  assert.equal(await guard.release(), "released");
  await (await others.tryLock("busy")).release();
});

test("fences grow with each holder", async () => {
  const first = await locks.lock("fences");
  await first.release();
  const second = await others.lock("fences");
  assert.ok(Number.isSafeInteger(second.fence) && second.fence > first.fence);
  await second.release();
});

test("released guard holds nothing", async () => {
  const guard = await locks.lock("released");
  guard.ensure(1000);
  const release = guard.release();
  assert.equal(guard.release(), release, "a second release is the first one");
  assert.equal(await release, "released");
  assert.equal(guard.valid, false);
  assert.equal(guard.remaining, 0);
  assert.equal(guard.lostReason, undefined);
  assert.equal(guard.signal.aborted, false);
  assert.throws(() => guard.ensure(), ClosedError);
  await assert.rejects(guard.renew(), ClosedError);
});

test("ensure compares the time that is left", async () => {
  const guard = await locks.lock("ensure", { ttl: 5000 });
  guard.ensure(1000);
  assert.throws(() => guard.ensure(60_000), { code: "LEASEHOLD_LOST" });
  const before = guard.remaining;
  await until(() => guard.remaining < before - 10, "some of the time is over");
  await guard.renew();
  assert.ok(guard.remaining > before - 10);
  await guard.release();
});

test("waiters are served in order", async () => {
  const guard = await locks.lock("order");
  const order = [];
  const waiting = [];
  for (const number of [1, 2, 3]) {
    waiting.push(others.lock("order").then((granted) => (order.push(number), granted.release())));
    await until(async () => (await locks.waiters("order")).length === number, "the waiter is queued");
  }
  await guard.release();
  await Promise.all(waiting);
  assert.deepEqual(order, [1, 2, 3]);
});

test("readers share, and a writer downgrades", async () => {
  const writer = await locks.lock("shared");
  assert.equal(await others.tryLock("shared", { shared: true }), undefined);
  await writer.downgrade();
  const reader = await others.lock("shared", { shared: true });
  assert.equal(await others.tryLock("shared"), undefined);
  await Promise.all([writer.release(), reader.release()]);
});

test("reentered lock is released with its last guard", async () => {
  const outer = await locks.lock("reentered");
  const inner = await outer.reenter();
  assert.equal(inner.fence, outer.fence);
  assert.equal(await inner.release(), "still_held");
  assert.equal(await others.tryLock("reentered"), undefined);
  assert.equal(await outer.release(), "released");
});

test("semaphore has that many permits", async () => {
  const [first, second] = await Promise.all([locks.semaphore("permits", 2), others.semaphore("permits", 2)]);
  assert.equal(await others.trySemaphore("permits", 2), undefined);
  await assert.rejects(others.semaphore("permits", 3, { wait: 100 }), { code: "LEASEHOLD_PERMITS_DIFFER" });
  await first.release();
  const third = await others.trySemaphore("permits", 2);
  await Promise.all([second.release(), third.release()]);
});

test("set holds all locks or none", async () => {
  const set = await locks.lockAll(["b", "a"]);
  assert.deepEqual(Object.keys(set.fences), ["a", "b"]);
  assert.equal(set.valid, true);
  const c = await others.lock("c");
  assert.equal(await others.tryLockAll(["b", "c"]), undefined);
  assert.equal(await set.release(), "released");
  const both = await locks.tryLockAll(["a", "b"]);
  await Promise.all([both.release(), c.release()]);
});

test("handle passes a lock to another client", async () => {
  const guard = await locks.lock("handle");
  const { fence } = guard;
  const handle = guard.intoHandle();
  assert.equal(guard.valid, false);
  assert.equal(await guard.release(), "still_held");
  assert.equal(await others.tryLock("handle"), undefined);
  const adopted = await others.adopt(await others.renewHandle(handle));
  assert.equal(adopted.fence, fence);
  assert.equal(await locks.releaseHandle(adopted.handle()), "released");
  assert.equal(await adopted.release(), "was_lost");
  await assert.rejects(locks.adopt("lh1_00"), { code: "LEASEHOLD_INVALID_INPUT" });
});

test("wrong arguments are refused before the store is asked", async () => {
  const closed = connect("redis://127.0.0.1:1");
  await assert.rejects(closed.lock(5), /^TypeError: name is 5, not a string$/);
  await assert.rejects(closed.lock("a", { timeout: 5 }), /there is no setting "timeout"/);
  await assert.rejects(closed.lock("a", { ttl: "5" }), /ttl is "5", not a number of milliseconds/);
  await assert.rejects(closed.lock("a", { ttl: -1 }), TypeError);
  await assert.rejects(closed.semaphore("a", 0), TypeError);
  await assert.rejects(closed.semaphore("a"), /permits is null, not a whole number/);
  await assert.rejects(closed.lockAll("a"), TypeError);
  await assert.rejects(closed.lockAll([1]), TypeError);
  await assert.rejects(closed.lock("a", 5000), /settings is 5000, not an object/);
  await assert.rejects(closed.using("a", {}), TypeError);
  await assert.rejects(closed.lock(""), { code: "LEASEHOLD_INVALID_INPUT" });
  await assert.rejects(closed.breakLock("a", -1), TypeError);
  assert.throws(() => connect("mysql://db"), { code: "LEASEHOLD_INVALID_INPUT", name: "LeaseholdError" });
  assert.throws(() => connect(5), TypeError);
});

test("store that does not answer is unavailable", async () => {
  await assert.rejects(connect("redis://127.0.0.1:1").lock("a", { wait: 300 }), (error) => {
    assert.equal(error.name, "UnavailableError");
    assert.equal(error.retryable, true);
    assert.match(error.store, /127\.0\.0\.1:1/);
    return true;
  });
});

test("closed client refuses calls and frees its locks", async () => {
  const client = connect("memory:closing");
  const guard = await client.lock("closing");
  const waiting = assert.rejects(client.lock("closing"), ClosedError);
  assert.equal(await client.close(), true);
  await waiting;
  assert.equal(guard.valid, false);
  await assert.rejects(client.lock("closing"), ClosedError);
  assert.equal(await client.close(), true, "closing again does nothing");
  const other = connect("memory:closing");
  await (await other.tryLock("closing")).release();
});
