// One instance for both kinds of modules.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { test } from "node:test";
import * as imported from "leasehold";

const required = createRequire(import.meta.url)("leasehold");

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
