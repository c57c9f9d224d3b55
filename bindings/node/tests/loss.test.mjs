// Locks that are lost.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { connect, LostError, UnavailableError } from "leasehold";
import { run } from "./support/programs.mjs";
import { freeze, serve } from "./support/servers.mjs";
import { aborted } from "./support/until.mjs";

let url, locks, operator;
before(async () => {
  url = await serve();
  locks = connect(url);
  operator = connect(url);
});
after(() => Promise.all([locks.close(), operator.close()]));

const take = (guard) => operator.breakLock(guard.name, guard.fence, { atOnce: true, reason: "a test" });

test("loss aborts the signal", async () => {
  const guard = await locks.lock("signal", { ttl: 1500 });
  const { signal } = guard;
  assert.equal(signal.aborted, false);
  assert.equal((await take(guard)).outcome, "done");
  const error = await aborted(signal);
  assert.ok(error instanceof LostError);
  assert.deepEqual([error.code, error.lock, error.reason], ["LEASEHOLD_LOST", "signal", "broken"]);
  assert.equal(guard.valid, false);
  assert.equal(guard.lostReason, "broken");
  assert.throws(() => guard.ensure(), LostError);
  assert.equal(await guard.release(), "was_lost");
});

test("signal of a guard that is lost already is aborted", async () => {
  const guard = await locks.lock("lost", { maxHold: 20 });
  while (guard.valid) await sleep(5);
  assert.equal(guard.signal.aborted, true);
  assert.equal(guard.signal.reason.reason, "max_hold");
  await guard.release();
});

test("using rejects if the lock was lost", async () => {
  let reason;
  const block = locks.using("using", { maxHold: 20 }, async (signal) => {
    reason = await aborted(signal);
  });
  await assert.rejects(block, LostError);
  assert.equal(reason.reason, "max_hold");
});

test("using passes the error of the routine on", async () => {
  const mine = new Error("mine");
  await assert.rejects(
    locks.using("mine", async () => {
      throw mine;
    }),
    mine,
  );
  await (await locks.tryLock("mine")).release();
  const afterLoss = locks.using("mine", { maxHold: 20 }, async (signal) => {
    await aborted(signal);
    throw mine;
  });
  await assert.rejects(afterLoss, mine);
});

test("using returns what the routine returns", async () => {
  assert.equal(await locks.using("value", async (signal, guard) => guard.name), "value");
  assert.equal(await locks.using(["x", "y"], async (signal, set) => Object.keys(set.fences).length), 2);
  assert.deepEqual((await operator.listLocks("value")).locks, []);
});

test("release in finally does not hide the error of the block", async () => {
  const mine = new Error("mine");
  const block = async () => {
    const guard = await locks.lock("finally", { maxHold: 20 });
    try {
      await aborted(guard.signal);
      throw mine;
    } finally {
      await guard.release();
    }
  };
  await assert.rejects(block(), mine);
});

test("dispose throws if the lock was lost during the block", async () => {
  const dispose = Symbol.asyncDispose ?? Symbol.for("Symbol.asyncDispose");
  const guard = await locks.lock("dispose", { maxHold: 20 });
  await aborted(guard.signal);
  await assert.rejects(guard[dispose](), LostError);
  const handled = await locks.lock("dispose", { maxHold: 20 });
  await aborted(handled.signal);
  await handled.release();
  await handled[dispose]();
  const held = await locks.lock("dispose");
  await held[dispose]();
  assert.equal(held.valid, false);
});

test("lost set names the lock that was lost", async () => {
  const set = await locks.lockAll(["s1", "s2"], { ttl: 1500 });
  await operator.breakLock("s2", set.fences.s2, { atOnce: true });
  const error = await aborted(set.signal);
  assert.equal(error.reason, "broken");
  assert.equal(set.valid, false);
  await set.release();
});

test("loss that nobody looks at is no unhandled rejection", async () => {
  const program = run("unobserved_loss.mjs", url);
  const { code } = await program.exit;
  assert.equal(program.err, "");
  assert.equal(program.out, "lost max_hold\n");
  assert.equal(code, 0);
});

test("lock outlives a blocked event loop", async () => {
  const guard = await locks.lock("blocked", { ttl: 1500 });
  const end = performance.now() + 4000;
  while (performance.now() < end);
  assert.equal(guard.valid, true);
  assert.equal(guard.lostReason, undefined);
  assert.equal(await guard.release(), "released");
});

test("quorum without a majority loses the lock, and names its members", async (context) => {
  const quorum = await serve("3");
  const client = connect(quorum);
  await client.init();
  const block = client.using("quorum", { ttl: 3000 }, async (signal) => {
    freeze(quorum, 0, context);
    freeze(quorum, 1, context);
    await aborted(signal);
  });
  await assert.rejects(block, (error) => error instanceof LostError && error.reason === "unreachable");
  await assert.rejects(client.lock("quorum", { ttl: 3000, wait: 200 }), (error) => {
    assert.ok(error instanceof UnavailableError);
    assert.equal(error.code, "LEASEHOLD_NO_QUORUM");
    assert.equal(Object.keys(error.members).length, 2);
    return true;
  });
  await client.close({ limit: 100 });
});
