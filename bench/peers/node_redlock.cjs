// node-redlock as a subject of the benchmarks: obeys the orders of worker_process.rs, line by line.
"use strict";
const { createInterface } = require("node:readline");
const { setTimeout: pause } = require("node:timers/promises");
const Redis = require("ioredis");
const { default: Redlock } = require("redlock");

const TTL = 30_000;
const [settings, key, waiters, holdMicros, awayMicros, ...ports] = process.argv.slice(2);
const hold = Number(holdMicros) / 1000;
const away = Number(awayMicros) / 1000;

// `default`, or the delay between two attempts in milliseconds, which then go on for ever; the
// jitter keeps the proportion that it has by default.
const retry =
  settings === "default"
    ? {}
    : { retryCount: -1, retryDelay: Number(settings), retryJitter: Math.ceil(Number(settings) / 2) };

const clients = ports.map((port) => new Redis({ host: "127.0.0.1", port: Number(port) }));
const locks = new Redlock(clients, retry);
const once = new Redlock(clients, { retryCount: 0 });

const now = () => process.hrtime.bigint();
const sections = [];
const pending = new Map();
let gaveUp = 0;
let why = "";

async function acquire() {
  for (;;) {
    try {
      return await locks.acquire([key], TTL);
    } catch (error) {
      gaveUp += 1;
      why = String(error.message);
    }
  }
}

async function contend(waiter) {
  for (;;) {
    const asked = now();
    pending.set(waiter, asked);
    const lock = await acquire();
    const acquired = now();
    pending.delete(waiter);
    await pause(hold);
    const releasing = now();
    sections.push([waiter, asked, acquired, releasing]);
    await lock.release();
    await pause(away);
  }
}

let held;
const orders = {
  take: async () => {
    held = await acquire();
    return "taken";
  },
  second: async () => {
    try {
      const lock = await once.acquire([key], TTL);
      await lock.release();
      return "granted";
    } catch {
      return "denied";
    }
  },
  give: async () => {
    await held.release();
    return "given";
  },
  start: async () => {
    for (let waiter = 0; waiter < Number(waiters); waiter += 1) contend(waiter);
    return "started";
  },
  mark: async () => `mark ${now()}`,
  finish: async () => {
    const lines = sections.map((section) => `section ${section.join(" ")}`);
    for (const [waiter, asked] of pending) lines.push(`pending ${waiter} ${asked}`);
    lines.push(`gave-up ${gaveUp} ${why}`, "finished");
    return lines.join("\n");
  },
};

async function obey() {
  for await (const order of createInterface({ input: process.stdin })) {
    process.stdout.write(`${await orders[order]()}\n`);
  }
  process.exit(0);
}

obey();
