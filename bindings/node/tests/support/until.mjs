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

/** Resolves with the reason of `signal` once it is aborted. */
export function aborted(signal) {
  if (signal.aborted) return Promise.resolve(signal.reason);
  return new Promise((resolve) => signal.addEventListener("abort", () => resolve(signal.reason), { once: true }));
}
