// The programs of docs/node.md, as a reader would run them.
import assert from "node:assert/strict";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { before, test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { connect } from "leasehold";
import { Program } from "./support/programs.mjs";
import { folder, serve } from "./support/servers.mjs";
import { until } from "./support/until.mjs";

const page = readFileSync(process.env.LEASEHOLD_TEST_PAGE, "utf8");
const programs = fileURLToPath(new URL("docs/", import.meta.url));
const blocks = [...page.matchAll(/```(\w+)\n(.*?)```/gs)].map(([, language, text]) => ({ language, text }));
let url;
before(async () => {
  url = await serve();
  mkdirSync(programs, { recursive: true });
});

/** Starts the program of the page that contains `text`, with the store of the tests. */
function start(text, env = {}) {
  const at = blocks.findIndex((block) => block.language === "js" && block.text.includes(text));
  assert.ok(at >= 0, `no program with ${text}`);
  const path = `${programs}${at}.mjs`;
  writeFileSync(path, blocks[at].text.replaceAll("redis://127.0.0.1", url).replace("/tmp/locks", folder()));
  const program = new Program(process.execPath, [path], { env: { ...process.env, LEASEHOLD_STORE: url, ...env } });
  const printed = blocks[at + 1]?.language === "text" ? blocks[at + 1].text : undefined;
  return { program, printed };
}

test("first program gets the lock", async () => {
  const { program } = start("I have the lock");
  assert.deepEqual(await program.exit, { code: 0, signal: null }, program.err);
  assert.match(program.out, /^I have the lock, with fence \d+\n$/);
});

for (const text of ["error.code", "maxHold: 200", "memory:tests"]) {
  test(`program with ${text} prints what the page says`, async () => {
    const { program, printed } = start(text);
    assert.deepEqual(await program.exit, { code: 0, signal: null }, program.err);
    assert.ok(printed);
    assert.equal(program.out, printed);
    assert.equal(program.err, "");
  });
}

test("readme shows the first program", () => {
  const readme = new URL("../README.md", pathToFileURL(process.env.LEASEHOLD_TEST_PAGE));
  const first = blocks.find((block) => block.language === "js").text;
  assert.ok(readFileSync(readme, "utf8").includes("```js\n" + first + "```"));
});

test("every program of the page is run by a test", () => {
  const languages = blocks.map((block) => block.language);
  assert.equal(languages.filter((language) => language === "js").length, 6);
  assert.equal(languages.filter((language) => language === "ts").length, 1);
});

test("block with await using compiles", async () => {
  writeFileSync(`${programs}block.mts`, blocks.find((block) => block.language === "ts").text);
  const config = { extends: "../types/tsconfig.json", compilerOptions: { noEmit: true }, include: ["block.mts"] };
  writeFileSync(`${programs}tsconfig.json`, JSON.stringify(config));
  const tsc = fileURLToPath(new URL("../node_modules/typescript/bin/tsc", import.meta.url));
  const program = new Program(process.execPath, [tsc, "-p", programs]);
  assert.equal((await program.exit).code, 0, program.out);
});

test("service ends its requests, and then frees its locks", async () => {
  const { program } = start("express", { PORT: "0" });
  await program.printed("port ");
  const port = program.out.match(/port (\d+)/)[1];
  const close = (month) => fetch(`http://127.0.0.1:${port}/months/${month}/close`, { method: "POST" });
  const locks = connect(url);

  const guard = await locks.lock("months/1");
  assert.equal((await close(1)).status, 409);
  await guard.release();
  assert.ok((await (await close(1)).json()).fence > guard.fence);

  const last = close(2);
  await program.printed("closes 2");
  program.child.kill("SIGTERM");
  assert.equal((await last).status, 200);
  assert.deepEqual(await program.exit, { code: 0, signal: null });
  assert.match(program.out, /closed\n$/);
  assert.deepEqual((await locks.listLocks()).locks, []);
  await locks.close();
});

test("cron job runs once per tick on three replicas", async () => {
  const replicas = [1, 2, 3].map(() => start("node-cron").program);
  await Promise.all(replicas.map((program) => program.printed("scheduled")));
  const runs = () => replicas.flatMap((program) => program.out.match(/runs .*/g) ?? []);
  await until(() => runs().length >= 4, "four ticks");
  replicas.forEach((program) => program.child.kill("SIGTERM"));
  for (const program of replicas) {
    assert.deepEqual(await program.exit, { code: null, signal: "SIGTERM" });
    assert.equal(program.err, "");
  }
  assert.deepEqual(runs(), [...new Set(runs())]);
});
