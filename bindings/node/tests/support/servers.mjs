// Servers of the tests: children on free ports, with folders of their own.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after } from "node:test";

/** Returns an empty folder, which is gone after the tests of the file. */
export function folder() {
  const path = mkdtempSync(join(tmpdir(), "leasehold-node-"));
  after(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

/** Starts `kind` ("1", "3", "postgres", "etcd" or "zookeeper") for the tests of the file, and returns its URL. */
export async function serve(kind = "1") {
  const program = process.env.LEASEHOLD_TEST_SERVERS;
  if (!program) throw new Error("LEASEHOLD_TEST_SERVERS is not set: run the tests by `cargo xtask bindings node`");
  const child = spawn(program, [kind], { stdio: ["pipe", "pipe", "inherit"] });
  after(async () => {
    child.stdin.end();
    if (child.exitCode === null) await once(child, "exit");
  });
  for await (const line of createInterface({ input: child.stdout })) {
    const url = line.match(/^export LEASEHOLD_STORE=(.*)$/)?.[1];
    if (url) return url;
  }
  throw new Error(`the servers ${kind} did not start`);
}

/** Returns the port of a URL of one server. */
export function portOf(url) {
  return Number(new URL(url).port);
}
