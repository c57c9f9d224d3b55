// Processes that end with a held lock and a call that waits.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { connect } from "leasehold";
import { run } from "./support/programs.mjs";
import { freeze, serve } from "./support/servers.mjs";
import { until } from "./support/until.mjs";

let url, locks;
before(async () => {
  url = await serve();
  locks = connect(url);
});
after(() => locks.close());

/** Waits until the lock of an ended process is free. Its TTL is much longer than the limit. */
async function isFree(name) {
  const guard = await until(() => locks.tryLock(name), `${name} is free`, 5000);
  await guard.release();
}

for (const [how, code, text] of [
  ["end", 0, ""],
  ["exit", 3, ""],
  ["throw", 1, "uncaught"],
  ["reject", 1, "unhandled"],
]) {
  test(`lock is free after the process ends by ${how}`, async () => {
    const program = run("ends.mjs", url, how);
    assert.deepEqual(await program.exit, { code, signal: null });
    assert.equal(program.out, "held\n");
    assert.ok(program.err.includes(text), program.err);
    await isFree(`ends-${how}`);
  });
}

for (const signal of ["SIGTERM", "SIGINT"]) {
  test(`closeOnSignals frees the lock at ${signal}`, async () => {
    const how = `close-on-${signal}`;
    const program = run("ends.mjs", url, how);
    await program.printed("held");
    await until(async () => (await locks.waiters(`ends-${how}`)).length === 1, "its call waits");
    program.child.kill(signal);
    assert.deepEqual(await program.exit, { code: null, signal });
    assert.equal(program.err, "");
    const guard = await locks.tryLock(`ends-${how}`);
    assert.ok(guard, "the lock is free as soon as the process has ended");
    await guard.release();
  });
}

test("closeOnSignals leaves the end to a handler of the program", async () => {
  const program = run("ends.mjs", url, "close-on-handled");
  await program.printed("held");
  program.child.kill("SIGTERM");
  assert.deepEqual(await program.exit, { code: 7, signal: null });
  assert.match(program.out, /handled/);
  await isFree("ends-close-on-handled");
});

test("signal without a handler leaves the lock to its TTL", async () => {
  const program = run("ends.mjs", url, "signal");
  await program.printed("held");
  program.child.kill("SIGTERM");
  assert.deepEqual(await program.exit, { code: null, signal: "SIGTERM" });
  const [holder] = await locks.holders("ends-signal");
  assert.equal(holder.client.pid, program.child.pid);
  assert.equal((await locks.breakLock("ends-signal", holder.fence, { atOnce: true })).outcome, "done");
});

test("frozen server does not keep the locks on others held", async (context) => {
  const frozen = await serve();
  const program = run("two_stores.mjs", frozen, url);
  await program.printed("held");
  freeze(frozen, 0, context);
  const began = performance.now();
  program.child.stdin.end();
  assert.deepEqual(await program.exit, { code: 5, signal: null });
  assert.ok(performance.now() - began < 3000, "the process waits a limited time");
  await isFree("two-stores");
});
