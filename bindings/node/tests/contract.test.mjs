// What each store promises, from Node and from the command.
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { describe, test } from "node:test";
import { connect } from "leasehold";
import { leasehold, python, run, runPython } from "./support/programs.mjs";
import { folder, serve } from "./support/servers.mjs";
import { until } from "./support/until.mjs";

const stores = {
  redis: () => serve("1"),
  "quorum of three": () => serve("3"),
  file: () => `file://${folder()}`,
  postgres: () => serve("postgres"),
  etcd: () => serve("etcd"),
  zookeeper: () => serve("zookeeper"),
};

for (const [name, start] of Object.entries(stores)) {
  describe(name, () => contract(name, start));
}

function contract(name, start) {
  let url, locks;

  test("is prepared", async () => {
    url = await start();
    locks = connect(url);
    await locks.init();
  });

  test("excludes other clients, and fences grow", async () => {
    const others = connect(url);
    const guard = await locks.lock("exclusive");
    assert.equal(await others.tryLock("exclusive"), undefined);
    const waiting = others.lock("exclusive");
    await guard.release();
    const next = await waiting;
    assert.ok(next.fence > guard.fence);
    await next.release();
    await others.close();
  });

  const contenders = python ? "Node, Python, and the command" : "Node and the command (the binding for Python was not built)";
  test(`excludes processes of ${contenders}`, async () => {
    const path = folder();
    writeFileSync(`${path}/count`, "0 0\n");
    const script = `set -e; set -C; : > ${path}/inside; read -r count fence < ${path}/count
      [ "$LEASEHOLD_FENCE" -gt "$fence" ]; set +C; echo "$((count + 1)) $LEASEHOLD_FENCE" > ${path}/count; rm ${path}/inside`;
    const command = async () => {
      for (let turn = 0; turn < 5; turn++) {
        const program = leasehold(url, "run", "section", "--", "sh", "-c", script);
        assert.equal((await program.exit).code, 0, program.err);
      }
    };
    const succeed = async (program) => assert.equal((await program.exit).code, 0, program.err);
    const programs = [run("section.mjs", url, path, 20), run("section.mjs", url, path, 20)];
    if (python) programs.push(runPython("section.py", url, path, 20));
    await Promise.all([command(), ...programs.map(succeed)]);
    assert.equal(readFileSync(`${path}/count`, "utf8").split(" ")[0], String(5 + 20 * programs.length));
  });

  test("frees the lock of a killed process", async () => {
    for (const start of [
      () => run("holds.mjs", url, "killed", 3000),
      () => leasehold(url, "run", "--ttl", "3s", "killed", "--", "sh", "-c", 'echo "holds $LEASEHOLD_FENCE"; exec sleep 600'),
    ]) {
      const program = start();
      await program.printed("holds ");
      assert.equal(await locks.tryLock("killed"), undefined);
      const fence = Number(program.out.match(/holds (\d+)/)[1]);
      program.child.kill("SIGKILL");
      await program.exit;
      const guard = await locks.lock("killed", { wait: 60_000 });
      assert.ok(guard.fence > fence);
      await guard.release();
    }
  });

  test("leaves nothing held", async () => {
    await until(async () => (await locks.listLocks()).locks.length === 0, "all locks are free");
    assert.equal(await locks.close(), true);
  });
}
