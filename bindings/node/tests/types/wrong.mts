// Mistakes that the types must refuse. The compiler reports each line that has none.
import { connect, Guard, LeaseholdError } from "leasehold";

const locks = connect("redis://a");

export async function wrong(): Promise<void> {
  // @ts-expect-error: the setting is called `wait`
  await locks.lock("job", { timeout: 5 });
  // @ts-expect-error: a call that does not wait has no wait
  await locks.tryLock("job", { wait: 5 });
  // @ts-expect-error: the promise is the lock only after `await`
  locks.lock("job").release();
  // @ts-expect-error: the lock may be busy
  (await locks.tryLock("job")).release();
  // @ts-expect-error: a fence is a number
  const fence: string = (await locks.lock("job")).fence;
  // @ts-expect-error: times are numbers
  await locks.lock("job", { ttl: "5s" });
  // @ts-expect-error: a semaphore has a number of permits
  await locks.semaphore("pool", {});
  // @ts-expect-error: the block of a lock ends by `await using`
  using guard = await locks.lock("job");
  // @ts-expect-error: the result of a request is text or bytes
  await locks.once("charge").run(async () => 5);
  // @ts-expect-error: only a client makes guards
  new Guard();
  // @ts-expect-error: only the library makes its errors
  new LeaseholdError("text");
  // @ts-expect-error: a guard cannot be changed
  (await locks.lock("job")).fence = 5;
  console.log(fence, guard);
}
