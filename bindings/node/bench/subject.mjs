// One round of one subject: `subject.mjs NAME PORT SECONDS CALLS`. Prints the cycles per second.
//
// A cycle acquires a free lock and releases it. This many calls are in flight, each on a lock of its own.
const [name, port, seconds, calls] = process.argv.slice(2);

const subjects = {
  async leasehold() {
    const locks = await leasehold();
    return async (lock) => {
      const guard = await locks.lock(lock);
      await guard.release();
    };
  },
  async "leasehold using"() {
    const locks = await leasehold();
    return (lock) => locks.using(lock, async () => {});
  },
  async "node-redlock"() {
    const red = await redlock();
    return async (lock) => {
      const held = await red.acquire([lock], 10_000);
      await held.release();
    };
  },
  async "node-redlock using"() {
    const red = await redlock();
    return (lock) => red.using([lock], 10_000, async () => {});
  },
  async "redis-semaphore"() {
    const redis = await connect();
    const { Mutex } = await import("redis-semaphore");
    return async (lock) => {
      const mutex = new Mutex(redis, lock, { lockTimeout: 10_000 });
      await mutex.acquire();
      await mutex.release();
    };
  },
  // Two commands without a script and without a renewal: no lock library can be faster on ioredis.
  async "ioredis SET, DEL"() {
    const redis = await connect();
    return async (lock) => {
      await redis.set(lock, "owner", "PX", 10_000, "NX");
      await redis.del(lock);
    };
  },
};

async function leasehold() {
  const { connect } = await import("leasehold");
  return connect(`redis://127.0.0.1:${port}`);
}

async function connect() {
  const { Redis } = await import("ioredis");
  return new Redis({ port: Number(port) });
}

async function redlock() {
  const { default: Redlock } = await import("redlock");
  return new (Redlock.default ?? Redlock)([await connect()]);
}

const cycle = await subjects[name]();
const lane = async (number, end) => {
  let cycles = 0;
  for (; performance.now() < end; cycles++) await cycle(`bench-${number}`);
  return cycles;
};
const run = async (ms) => {
  const begin = performance.now();
  const lanes = Array.from({ length: Number(calls) }, (_, number) => lane(number, begin + ms));
  const cycles = (await Promise.all(lanes)).reduce((sum, it) => sum + it);
  return (cycles / (performance.now() - begin)) * 1000;
};
await run(200);
console.log(Math.round(await run(Number(seconds) * 1000)));
process.exit();
