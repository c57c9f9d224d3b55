// One instance for both kinds of modules.
import assert from "node:assert/strict";
import { cpSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { test } from "node:test";
import * as imported from "leasehold";
import { folder } from "./support/servers.mjs";

const require = createRequire(import.meta.url);
const required = require("leasehold");

test("import and require return the same classes", () => {
  const { default: _, "module.exports": __, ...names } = imported;
  assert.deepEqual(Object.keys(names).sort(), Object.keys(required).sort());
  for (const name of Object.keys(required)) assert.equal(imported[name], required[name], name);
});

test("error of one is an instance of the class of the other", async () => {
  const guard = await required.connect("memory:modules").lock("a");
  const call = imported.connect("memory:modules").lock("a", { wait: 10 });
  await assert.rejects(call, (error) => error instanceof required.BusyError);
  await guard.release();
});

test("missing binary is explained", () => {
  const copy = folder();
  cpSync(join(dirname(require.resolve("leasehold")), "lib"), join(copy, "lib"), { recursive: true });
  assert.throws(() => require(join(copy, "lib/native.cjs")), (error) => {
    assert.match(error.message, /^cannot load @leasehold\/linux-\w+-(gnu|musl): .*--include=optional/);
    assert.equal(error.cause.code, "MODULE_NOT_FOUND");
    return true;
  });
});

test("closeOnSignals can be undone", () => {
  const count = () => process.listenerCount("SIGTERM") + process.listenerCount("SIGHUP");
  const before = count();
  const stop = imported.closeOnSignals(["SIGTERM", "SIGHUP"]);
  assert.equal(count(), before + 2);
  stop();
  assert.equal(count(), before);
});
