// Guards that the garbage collector finds.
import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { before, test } from "node:test";
import { Program } from "./support/programs.mjs";
import { serve } from "./support/servers.mjs";

let url;
before(async () => {
  url = await serve();
});

test("collected guard stays held, and a warning says so", async () => {
  const path = fileURLToPath(new URL("programs/forgets.mjs", import.meta.url));
  const program = new Program(process.execPath, ["--expose-gc", path, url]);
  assert.deepEqual(await program.exit, { code: 0, signal: null });
  assert.equal(program.out, "LeaseholdWarning LEASEHOLD_UNRELEASED\nbusy true\n");
  assert.match(program.err, /the guard of lock "forgotten" was garbage-collected before its release/);
});
