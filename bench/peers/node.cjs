// The peers of Node.js as subjects of the benchmarks: obey the orders of worker_process.rs, line by line.
"use strict";
const { createInterface } = require("node:readline");
const { setTimeout: pause } = require("node:timers/promises");
const Redis = require("ioredis");
const { default: Redlock } = require("redlock");

const TTL = 30_000;
const [part, settings, key, keys, waiters, holdMicros, awayMicros, ...ports] = process.argv.slice(2);
const hold = Number(holdMicros) / 1000;
const away = Number(awayMicros) / 1000;
const clients = ports.map((port) => new Redis({ host: "127.0.0.1", port: Number(port) }));

// `default`, or the delay between two attempts in milliseconds, which then go on for ever; the
// jitter keeps the proportion that it has by default.
const retry = Number.isNaN(Number(settings))
  ? {}
  : { retryCount: -1, retryDelay: Number(settings), retryJitter: Math.ceil(Number(settings) / 2) };

// Each part gives a function from a key to a handle: acquire, which throws if it gives up; once,
// which returns nothing if the lock is held; release.
const parts = {
  redlock: () => {
    const locks = new Redlock(clients, retry);
    const once = new Redlock(clients, { retryCount: 0 });
    return (name) => ({
      acquire: () => locks.acquire([name], TTL),
      once: () => once.acquire([name], TTL).catch(() => undefined),
      release: (held) => held.release(),
    });
  },
};
const handle = parts[part]();
const count = Number(waiters);
const handles = [];
for (let waiter = 0; waiter < count; waiter += 1) {
  handles.push(handle(keys === "each" ? `${key}-${waiter + 1}` : key));
}
// What proves that the lock is real.
const [first, second] = [handle(key), handle(key)];

const now = () => Number(process.hrtime.bigint());
const sections = [];
const pending = new Map();
let gaveUp = 0;
let why = "";

async function patiently(handle) {
  for (;;) {
    try {
      return await handle.acquire();
    } catch (error) {
      gaveUp += 1;
      why = String(error.message);
    }
  }
}

// About that long: who comes back after one and the same time falls in step with others. Ten different
// pauses in any order, and then again: so all clients pause for the same time in total.
class Pauses {
  left = [];

  next() {
    if (this.left.length === 0) {
      this.left = Array.from({ length: 10 }, (_, step) => away * (0.55 + step / 10));
    }
    const [drawn] = this.left.splice(Math.floor(Math.random() * this.left.length), 1);
    return drawn;
  }
}

async function contend(waiter) {
  const handle = handles[waiter];
  const pauses = new Pauses();
  for (;;) {
    const asked = now();
    pending.set(waiter, asked);
    const lock = await patiently(handle);
    const acquired = now();
    pending.delete(waiter);
    await pause(hold);
    const releasing = now();
    sections.push([waiter, asked, acquired, releasing]);
    await handle.release(lock);
    await pause(pauses.next());
  }
}

// All handles, for a span in milliseconds.
async function cycle(span) {
  const cycles = [];
  let failed = 0;
  let why = "";
  const began = performance.now();
  const one = async (handle) => {
    while (performance.now() - began < span) {
      const asked = performance.now();
      try {
        await handle.release(await handle.acquire());
        cycles.push(performance.now() - asked);
      } catch (error) {
        failed += 1;
        why = String(error.message);
      }
    }
  };
  await Promise.all(handles.map(one));
  const seconds = (performance.now() - began) / 1000;
  cycles.sort((a, b) => a - b);
  const [cycle_p50, cycle_p99] = [50, 99].map((percent) => {
    const rank = Math.max(1, Math.ceil((cycles.length * percent) / 100));
    return (cycles[rank - 1] ?? 0) * 1000;
  });
  const longest = (cycles.at(-1) ?? 0) * 1000;
  return JSON.stringify({ cycles: cycles.length, seconds, cycle_p50, cycle_p99, longest, failed, why });
}

let held;
const orders = {
  take: async () => {
    held = await patiently(first);
    return "taken";
  },
  second: async () => {
    const lock = await second.once();
    if (lock === undefined) return "denied";
    await second.release(lock);
    return "granted";
  },
  give: async () => {
    await first.release(held);
    return "given";
  },
  start: async () => {
    for (let waiter = 0; waiter < count; waiter += 1) contend(waiter);
    return "started";
  },
  mark: async () => now(),
  "cycle-for": cycle,
  finish: async () =>
    JSON.stringify({ sections, pending: [...pending.values()], gave_up: gaveUp, why }),
};

async function obey() {
  for await (const line of createInterface({ input: process.stdin })) {
    const [order, number] = line.split(" ");
    process.stdout.write(`${await orders[order](Number(number))}\n`);
  }
  process.exit(0);
}

obey();
