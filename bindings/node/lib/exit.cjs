// The end of a process, and of a worker thread.
"use strict";
const native = require("./native.cjs");
const { calls } = require("./calls.cjs");

// The time for the confirmations at the end of a process, in ms. The locks of a server that does not answer are left to
// their TTL.
const CONFIRM_AT_EXIT = 2000;

const clients = new Set();
let isRegistered = false;

/** Closes `client` when the process ends by itself, by `process.exit`, or by an uncaught error. */
function closeAtExit(client) {
  clients.add(client);
  if (isRegistered) return;
  isRegistered = true;
  process.on("exit", () => {
    // The waits first. Otherwise a lock that is released next goes to a waiter of this process, which waits no more.
    calls.drop();
    native.closeNow(Array.from(clients), CONFIRM_AT_EXIT / 1000);
  });
}

/** Returns whether the store confirmed all releases of `client` within `limit` ms. */
async function closeNative(client, limit) {
  try {
    await calls.start((loop, id) => client.close(loop, id, limit / 1000));
    return true;
  } catch (error) {
    if (error.code === "LEASEHOLD_UNREACHABLE") return false;
    throw error;
  } finally {
    // Not before: a process that ends meanwhile waits for the confirmations.
    clients.delete(client);
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
      await Promise.all(Array.from(clients, (client) => closeNative(client, limit)));
    } finally {
      if (process.listenerCount(signal) === 0) process.kill(process.pid, signal);
    }
  }
  for (const signal of signals) process.on(signal, onSignal);
  return stop;
}

module.exports = { closeAtExit, closeNative, closeOnSignals };
