// Elections of a leader.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { connect, LostError } from "leasehold";
import { serve } from "./support/servers.mjs";
import { aborted } from "./support/until.mjs";

let locks, others;
before(async () => {
  const url = await serve();
  locks = connect(url, { label: "first" });
  others = connect(url);
});
after(() => Promise.all([locks.close(), others.close()]));

test("one candidate leads until it resigns", async () => {
  const leadership = await locks.election("one", { value: "10.0.0.1" }).campaign();
  const rival = others.election("one", { value: "10.0.0.2" }).campaign();
  const leader = await others.election("one").leader();
  assert.deepEqual([leader.value, leader.fence, leader.client.label], ["10.0.0.1", leadership.fence, "first"]);
  assert.ok(leader.since instanceof Date);
  await leadership.publish("10.0.0.9");
  assert.equal((await others.election("one").leader()).value, "10.0.0.9");
  assert.equal(await leadership.resign(), "released");
  const next = await rival;
  assert.ok(next.fence > leadership.fence);
  await next.resign();
  assert.equal(await locks.election("one").leader(), undefined);
});

test("observer sees each leader", async () => {
  const election = locks.election("seen", { value: "a", pollInterval: 10 });
  const seen = [];
  let leadership;
  for await (const change of others.election("seen", { pollInterval: 10 }).observe()) {
    seen.push(change.leader?.value);
    if (seen.length === 1) leadership = await election.campaign();
    else if (seen.length === 2) await leadership.publish("b");
    else if (seen.length === 3) await leadership.resign();
    else break;
  }
  assert.deepEqual(seen, [undefined, "a", "b", undefined]);
});

test("observer can be aborted, and ends when its client is closed", async () => {
  const changes = locks.election("aborted").observe({ signal: AbortSignal.timeout(50) });
  const watch = async () => {
    for await (const change of changes) assert.deepEqual(change, {});
  };
  await assert.rejects(watch(), { name: "TimeoutError" });
  const client = connect("memory:");
  const ended = [];
  for await (const change of client.election("closed").observe()) {
    ended.push(change);
    await client.close();
  }
  assert.equal(ended.length, 1);
  await assert.rejects(locks.election("short", { pollInterval: 1 }).observe().next(), {
    code: "LEASEHOLD_INVALID_INPUT",
  });
});

test("lost leadership aborts its signal", async () => {
  const leadership = await locks.election("lost", { ttl: 1500 }).campaign();
  await others.breakLock("lost", leadership.fence, { atOnce: true });
  assert.ok((await aborted(leadership.signal)) instanceof LostError);
  assert.equal(leadership.valid, false);
  await assert.rejects(leadership.publish("no"), LostError);
  await leadership.resign();
});
