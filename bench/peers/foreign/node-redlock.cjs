// A node-redlock client with default settings that takes the lock in a loop. Its arguments and its
// output are those of redsync.go.
"use strict";
const fs = require("node:fs");
const { setTimeout: pause } = require("node:timers/promises");
const Redis = require("ioredis");
const { default: Redlock, ExecutionError, ResourceLockedError } = require("redlock");

const HOLD = 10;
const TTL = 8_000;
const [port, name, section, seconds, away] = process.argv.slice(2);
const redlock = new Redlock([new Redis({ host: "127.0.0.1", port: Number(port) })]);
redlock.on("error", (error) => {
  if (!(error instanceof ResourceLockedError)) throw error;
});

// See poll in redsync.go.
async function poll() {
  const began = Date.now();
  const clock = performance.now();
  const lock = await redlock.acquire([name], TTL).catch((error) => {
    if (!(error instanceof ExecutionError)) throw error;
  });
  const took = Math.round((performance.now() - clock) * 1000);
  let outcome = "gave-up";
  if (lock) {
    outcome = enter() ? "got" : "overlap";
    await pause(HOLD);
    if (outcome === "got") fs.unlinkSync(section);
    await lock.release();
  }
  process.stdout.write(`${began * 1000} ${took} ${outcome}\n`);
}

function enter() {
  try {
    fs.closeSync(fs.openSync(section, "wx"));
    return true;
  } catch {
    return false;
  }
}

async function main() {
  const end = performance.now() + Number(seconds) * 1000;
  while (performance.now() < end) {
    await poll();
    // Without a pause, not even a timer.
    if (Number(away) > 0) await pause(Number(away));
  }
  process.exit(0);
}

main();
