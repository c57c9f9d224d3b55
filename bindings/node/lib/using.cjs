// Blocks of code that run while something is held.
"use strict";
const { calls } = require("./calls.cjs");

/**
 * Runs `routine` under `hold` and then `end`, which gets the output of the routine and returns that of the block. After an
 * error of the routine, it releases the hold. An error of that release would hide the one of the routine.
 */
async function runUnder(hold, routine, end) {
  // The routine may wait for nothing but the signal, which does not keep the process alive.
  calls.keepAlive();
  try {
    const output = await routine(hold.signal, hold);
    return await end(output);
  } catch (error) {
    const released = hold.release().catch(() => {});
    // A lost hold has nothing to free.
    if (!hold.lostReason) await released;
    throw error;
  } finally {
    calls.letEnd();
  }
}

module.exports = { runUnder };
