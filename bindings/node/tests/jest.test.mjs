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
    // What Jest prints when it has to wait, or to end a worker by force.
    const impatient = /did not exit|failed to exit|open handle/;
    let program;
    let prefix;
    // Jest gives a worker 500 ms to end. A busy machine may need more, but not each time.
    for (let attempt = 0; attempt === 0 || (impatient.test(program.err) && attempt < 3); attempt++) {
      prefix = `left ${workers} ${attempt}`;
      const env = { ...process.env, LEASEHOLD_URL: url, LEASEHOLD_PREFIX: prefix };
      const args = [jest, "--rootDir", folder, "--no-cache", workers];
      program = new Program(process.execPath, args, { cwd: folder, env });
      assert.equal((await program.exit).code, 0, program.err);
      assert.match(program.err, /Tests:\s+2 passed, 2 total/);
    }
    assert.doesNotMatch(program.err, impatient);
    const locks = connect(url);
    assert.deepEqual((await locks.listLocks(`${prefix}*`)).locks, [], "the locks of ended workers are free");
    await locks.close();
  });
}
