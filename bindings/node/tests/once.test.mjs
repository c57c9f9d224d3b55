// Requests that take effect once.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { BusyError, connect } from "leasehold";
import { serve } from "./support/servers.mjs";
import { aborted } from "./support/until.mjs";

let locks, others;
before(async () => {
  const url = await serve();
  locks = connect(url);
  others = connect(url);
});
after(() => Promise.all([locks.close(), others.close()]));

test("request runs once, and all callers get its result", async () => {
  let runs = 0;
  const pay = async (signal, run) => {
    runs += 1;
    return `paid under ${run.fence}`;
  };
  const results = await Promise.all([locks, others, locks, others].map((it) => it.once("charge").run(pay)));
  assert.equal(runs, 1);
  for (const result of results) {
    assert.equal(result.bytes.toString(), `paid under ${result.fence}`);
    assert.ok(result.remaining > 86_000_000);
  }
  assert.equal((await locks.once("charge").result()).bytes.toString(), results[0].bytes.toString());
  assert.equal(await locks.once("charge").forget(), true);
  assert.equal(await locks.once("charge").result(), undefined);
});

test("result is bytes", async () => {
  const result = await locks.once("bytes").run(async () => new Uint8Array([0, 255, 7]));
  assert.ok(Buffer.isBuffer(result.bytes));
  assert.deepEqual([...(await others.once("bytes").result()).bytes], [0, 255, 7]);
  await assert.rejects(locks.once("number").run(async () => 5), /the result is 5, not a string or a Uint8Array/);
  const next = await others.once("number").tryBegin();
  assert.equal(next.state, "run");
  await next.run.release();
});

test("failed attempt is repeated by the next caller", async () => {
  const failing = async () => {
    throw new Error("card declined");
  };
  await assert.rejects(locks.once("repeat").run(failing), /card declined/);
  const result = await others.once("repeat").run(async () => "second");
  assert.equal(result.bytes.toString(), "second");
});

test("other payload is refused", async () => {
  await locks.once("payload", { payload: "EUR 5", retention: 60_000 }).run(async () => "paid");
  await assert.rejects(others.once("payload", { payload: new Uint8Array([1]), retention: 60_000 }).result(), {
    code: "LEASEHOLD_INVALID_INPUT",
  });
});

test("steps of a request can be taken by hand", async () => {
  const once = locks.once("steps");
  const start = await once.begin();
  assert.equal(start.state, "run");
  assert.equal(start.run.name, "steps");
  const busy = await others.once("steps").tryBegin();
  assert.equal(busy.state, "in_progress");
  assert.equal(busy.holder.fence, start.run.fence);
  await assert.rejects(others.once("steps", { wait: 50 }).run(async () => ""), BusyError);
  const result = await start.run.commit("done");
  assert.equal(result.fence, start.run.fence);
  assert.equal((await others.once("steps").begin()).result.bytes.toString(), "done");
});

test("released run leaves the request to the next caller", async () => {
  const start = await locks.once("left").begin();
  assert.equal(await start.run.release(), "released");
  const next = await others.once("left").tryBegin();
  assert.equal(next.state, "run");
  await next.run.release();
});

test("late commit of a lost run is refused if another attempt has begun", async () => {
  const lost = locks.once("late", { maxHold: 20, ttl: 1000 }).run(async (signal) => {
    await aborted(signal);
    await others.once("late").run(async () => "second");
    return "first";
  });
  await assert.rejects(lost, { code: /^LEASEHOLD_(FENCED|LOST)$/ });
  assert.equal((await locks.once("late").result()).bytes.toString(), "second");
});
