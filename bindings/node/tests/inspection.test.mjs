// What operators see, and what they break.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { connect } from "leasehold";
import { serve } from "./support/servers.mjs";
import { until } from "./support/until.mjs";

let locks, operator;
before(async () => {
  const url = await serve("3");
  locks = connect(url.split(","), { label: "worker" });
  operator = connect(url);
  // Before the first call: a client that connects would begin to initialize the quorum, too.
  assert.equal(await operator.init(), true);
  assert.equal(await operator.init(), false);
});
after(() => Promise.all([locks.close(), operator.close()]));

test("holders and waiters are shown", async () => {
  const guard = await locks.lock("shown");
  const waiting = operator.lock("shown");
  const [holder] = await operator.holders("shown");
  assert.deepEqual([holder.mode, holder.fence, holder.broken], ["exclusive", guard.fence, false]);
  assert.deepEqual([holder.client.label, holder.client.pid, holder.client.program], ["worker", process.pid, "node"]);
  assert.ok(holder.since instanceof Date && holder.remaining > 1000);
  const [waiter] = await until(async () => (await locks.waiters("shown")).at(0) && locks.waiters("shown"), "it waits");
  assert.equal(waiter.client.pid, process.pid);
  await guard.release();
  await (await waiting).release();
});

test("listing has the locks of a pattern", async () => {
  const set = await locks.lockAll(["list/a", "list/b", "other"]);
  const listing = await operator.listLocks("list/*");
  assert.deepEqual(listing.locks.map((lock) => lock.name), ["list/a", "list/b"]);
  assert.equal(listing.hasMajority, true);
  assert.equal(listing.locks[0].holders[0].fence, set.fences["list/a"]);
  assert.equal((await operator.listLocks("list/*", { limit: 1 })).more, true);
  await set.release();
});

test("lock is broken for its holder alone", async () => {
  const guard = await locks.lock("broken");
  assert.equal((await operator.breakLock("broken", guard.fence + 1)).outcome, "held_by");
  const outcome = await operator.breakLock("broken", guard.fence, { atOnce: true, user: "ann", reason: "hangs" });
  assert.equal(outcome.outcome, "done");
  assert.equal((await operator.breakLock("free", 1)).outcome, "free");
  const next = await operator.lock("broken");
  await Promise.all([next.release(), guard.release()]);
});

test("health names each member", async () => {
  const members = await operator.health();
  assert.equal(members.length, 3);
  assert.ok(members.every((member) => member.hasVote && member.error === undefined));
});
