// A program that the types must accept.
import {
  BusyError,
  closeOnSignals,
  connect,
  LeaseholdError,
  LostError,
  type Guard,
  type LeaderChange,
  type OnceResult,
} from "leasehold";

const locks = connect(["redis://a", "redis://b", "redis://c"], { label: "types" });

export async function all(controller: AbortController): Promise<number> {
  await using guard = await locks.lock("job", { ttl: 10_000, wait: 500, shared: true, signal: controller.signal });
  guard.ensure(100);
  const fence: number = guard.fence;
  const tried: Guard | undefined = await locks.tryLock("job");
  if (tried?.valid) await tried.release();
  const name: string = await locks.using("job", async (signal, held) => {
    signal.throwIfAborted();
    return held.name;
  });
  const fences: Record<string, number> = await locks.using(["a", "b"], { ttl: 5000 }, async (_, set) => set.fences);
  await using permit = await locks.semaphore("pool", 3, { wait: 10 });
  const outcome: "released" | "was_lost" | "still_held" = await permit.release();
  const result: OnceResult = await locks.once("charge", { payload: "EUR 5" }).run(async () => "paid");
  const start = await locks.once("charge").begin();
  if (start.state === "run") await start.run.commit(new Uint8Array());
  else if (start.state === "done") console.log(start.result.bytes.toString());
  else console.log(start.holder?.text);
  const changes: AsyncIterable<LeaderChange> = locks.election("leader", { value: "me" }).observe();
  for await (const { leader, error } of changes) console.log(leader?.value, error?.code);
  const stop: () => void = closeOnSignals(["SIGTERM"], { limit: 100 });
  stop();
  const confirmed: boolean = await locks.close({ limit: 1000 });
  try {
    await fetch("http://localhost", { signal: guard.signal });
  } catch (error) {
    if (error instanceof LostError) console.log(error.reason, error.lock);
    else if (error instanceof BusyError) console.log(error.retryable);
    else if (error instanceof LeaseholdError && error.code === "LEASEHOLD_NO_QUORUM") console.log(error.members);
    else throw error;
  }
  return fence + result.fence + Object.keys(fences).length + Number(confirmed) + name.length + outcome.length;
}
