// What keeps a process alive.
import assert from "node:assert/strict";
import { before, test } from "node:test";
import { run } from "./support/programs.mjs";
import { serve } from "./support/servers.mjs";

let url;
before(async () => {
  url = await serve();
});

test("held and watched lock does not keep the process alive", async () => {
  const program = run("idle.mjs", url);
  assert.deepEqual(await program.exit, { code: 0, signal: null });
  assert.equal(program.out, 'imported []\nwaiting ["Timeout"]\nBusyError []\n');
  assert.equal(program.err, "");
});

test("block under a lock keeps the process alive", async () => {
  const program = run("only_signal.mjs", url);
  assert.deepEqual(await program.exit, { code: 0, signal: null });
  assert.equal(program.out, "LostError\n");
});
