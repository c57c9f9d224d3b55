// The end of a process, and of a worker thread.
"use strict";
const calls = require("./calls.cjs");

// The time for the confirmations at the end of a process, in seconds: the lock of a server that does not answer is left
// to its TTL.
const CONFIRM_AT_EXIT = 0.5;

const clients = new Set();
let isRegistered = false;

/** Closes `native` when the process ends by itself, by `process.exit`, or by an uncaught error. */
function closeAtExit(native) {
  clients.add(native);
  if (isRegistered) return;
  isRegistered = true;
  process.on("exit", () => {
    // The waits first. Otherwise a lock that is released next goes to a waiter of this process, which waits no more.
    calls.drop();
    for (const client of clients) client.closeNow(CONFIRM_AT_EXIT);
  });
}

/** Returns whether the store confirmed all releases of `native` within `limit` ms. */
async function closeNative(native, limit) {
  try {
    await calls.start((loop, id) => native.close(loop, id, limit / 1000));
    return true;
  } catch (error) {
    if (error.code === "LEASEHOLD_UNREACHABLE") return false;
    throw error;
  } finally {
    // Not before: a process that ends meanwhile waits for the confirmations.
    clients.delete(native);
  }
}

/**
 * Closes all clients when one of `signals` arrives, and then lets the signal end the process, unless the program handles
 * it too. Returns a function that undoes this.
 */
function closeOnSignals(signals = ["SIGINT", "SIGTERM"], { limit = 5000 } = {}) {
  const stop = () => signals.forEach((signal) => process.removeListener(signal, onSignal));
  async function onSignal(signal) {
    // A second signal ends the process at once.
    stop();
    try {
      await Promise.all(Array.from(clients, (native) => closeNative(native, limit)));
    } finally {
      if (process.listenerCount(signal) === 0) process.kill(process.pid, signal);
    }
  }
  for (const signal of signals) process.on(signal, onSignal);
  return stop;
}

module.exports = { closeAtExit, closeNative, closeOnSignals };
