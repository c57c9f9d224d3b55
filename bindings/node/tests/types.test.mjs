// The types, by a strict compiler.
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { test } from "node:test";
import { connect } from "leasehold";
import { Program } from "./support/programs.mjs";

const path = (name) => fileURLToPath(new URL(name, import.meta.url));

async function compile(...args) {
  const program = new Program(process.execPath, [path("../node_modules/typescript/bin/tsc"), ...args]);
  const { code } = await program.exit;
  return { code, out: program.out + program.err };
}

test("right programs compile, and each mistake is an error", async () => {
  assert.deepEqual(await compile("-p", path("types")), { code: 0, out: "" });
});

test("mistakes are reported without their comments", async () => {
  const text = readFileSync(path("types/wrong.mts"), "utf8");
  const mistakes = text.match(/@ts-expect-error/g).length;
  writeFileSync(path("types/unexpected.mts"), text.replaceAll("@ts-expect-error", "mistake"));
  const { code, out } = await compile("-p", path("types"), "--noEmit", "--pretty", "false");
  assert.notEqual(code, 0);
  const lines = out.split("\n").filter((line) => line.includes("error TS"));
  assert.ok(lines.length >= mistakes, out);
  assert.ok(lines.every((line) => line.includes("unexpected.mts")), out);
});

test("await using releases the lock, compiled for this Node", async () => {
  const { run } = await import("../typed/await_using.mjs");
  const locks = connect("memory:types");
  assert.equal(await run(locks, locks), true);
  assert.ok(await locks.tryLock("typed"));
});
