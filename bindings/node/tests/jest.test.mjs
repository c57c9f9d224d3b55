// Jest loads the package, and ends by itself although a lock is held and the client is open.
import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { before, test } from "node:test";
import { connect } from "leasehold";
import { Program } from "./support/programs.mjs";
import { serve } from "./support/servers.mjs";

let url;
before(async () => {
  url = await serve();
});

for (const workers of ["--runInBand", "--maxWorkers=2"]) {
  test(`jest ${workers} passes and ends`, async () => {
    const folder = fileURLToPath(new URL("jest", import.meta.url));
    const jest = fileURLToPath(new URL("../node_modules/jest/bin/jest.js", import.meta.url));
    const program = new Program(process.execPath, [jest, "--rootDir", folder, "--no-cache", workers], {
      cwd: folder,
      env: { ...process.env, LEASEHOLD_URL: url },
    });
    const { code } = await program.exit;
    assert.equal(code, 0, program.err);
    assert.match(program.err, /Tests:\s+2 passed, 2 total/);
    // What Jest prints when it has to wait, or to end a worker by force.
    assert.doesNotMatch(program.err, /did not exit|failed to exit|open handle/);
    const locks = connect(url);
    assert.deepEqual((await locks.listLocks()).locks, [], "the locks of ended workers are free");
    await locks.close();
  });
}
