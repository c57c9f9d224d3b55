import { setTimeout as sleep } from "node:timers/promises";

/** Waits until `check` returns a truthy value, and returns it. */
export async function until(check, what, limit = 20_000) {
  const end = performance.now() + limit;
  for (;;) {
    const value = await check();
    if (value) return value;
    if (performance.now() > end) throw new Error(`not within ${limit} ms: ${what}`);
    await sleep(5);
  }
}

/** Resolves with the reason of `signal` once it is aborted. A signal alone would not keep the process alive. */
export async function aborted(signal) {
  await until(() => signal.aborted, "the signal is aborted");
  return signal.reason;
}
