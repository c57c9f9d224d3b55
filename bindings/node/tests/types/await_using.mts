// A block that ends with the release of its lock.
import type { Client } from "leasehold";

export async function run(locks: Client, others: Client): Promise<boolean> {
  await using guard = await locks.lock("typed");
  return guard.valid && (await others.tryLock("typed")) === undefined;
}
