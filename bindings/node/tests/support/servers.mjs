// Servers of the tests: children on free ports, with folders of their own.
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

// The processes of the Redis servers, by URL.
const servers = new Map();

/** Returns an empty folder, which is gone after the tests of the file. */
export function folder() {
  const path = mkdtempSync(join(tmpdir(), "leasehold-node-"));
  process.on("exit", () => rmSync(path, { recursive: true, force: true }));
  return path;
}

/** Starts `kind` ("1", "3", "postgres", "etcd" or "zookeeper") for the tests of the file, and returns its URL. */
export async function serve(kind = "1") {
  const program = process.env.LEASEHOLD_TEST_SERVERS;
  if (!program) throw new Error("LEASEHOLD_TEST_SERVERS is not set: run the tests by `cargo xtask bindings node`");
  const child = spawn(program, [kind], { stdio: ["pipe", "pipe", "inherit"] });
  const pids = [];
  for await (const line of createInterface({ input: child.stdout })) {
    const pid = line.match(/\(pid (\d+)\)$/)?.[1];
    if (pid) pids.push(Number(pid));
    const url = line.match(/^export LEASEHOLD_STORE=(.*)$/)?.[1];
    if (!url) continue;
    // It ends when this process has ended, and its standard input is closed.
    for (const handle of [child, child.stdin, child.stdout]) handle.unref();
    servers.set(url, pids);
    return url;
  }
  throw new Error(`the servers ${kind} did not start`);
}

/** Stops the Redis server number `at` of a URL until the test has ended: it keeps its connections and does not answer. */
export function freeze(url, at, context) {
  const pid = servers.get(url)[at];
  process.kill(pid, "SIGSTOP");
  context.after(() => process.kill(pid, "SIGCONT"));
}

/** Returns the port of a URL of one server. */
export function portOf(url) {
  return Number(new URL(url).port);
}
