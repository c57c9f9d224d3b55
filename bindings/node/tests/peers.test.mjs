// Other libraries on the same keys.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { connect } from "leasehold";
import { Redis } from "ioredis";
import { Mutex } from "redis-semaphore";
import redlock from "redlock";
import { portOf, serve } from "./support/servers.mjs";
import { until } from "./support/until.mjs";

const Redlock = redlock.default ?? redlock;
let locks, redis;
before(async () => {
  const url = await serve();
  locks = connect(url);
  redis = new Redis({ port: portOf(url) });
});
after(async () => {
  redis.disconnect();
  await locks.close();
});

/** The other libraries: how to try to acquire a lock, which returns undefined or a function that releases it. */
const peers = {
  "node-redlock": {
    key: "redlock-key",
    async attempt() {
      const red = new Redlock([redis], { retryCount: 0 });
      try {
        const lock = await red.acquire([this.key], 10_000);
        return () => lock.release();
      } catch {
        return undefined;
      }
    },
  },
  "redis-semaphore": {
    key: "mutex:semaphore-key",
    async attempt() {
      const mutex = new Mutex(redis, "semaphore-key", { lockTimeout: 10_000, acquireAttemptsLimit: 1 });
      return (await mutex.tryAcquire()) ? () => mutex.release() : undefined;
    },
  },
};

for (const [name, peer] of Object.entries(peers)) {
  test(`${name} and leasehold exclude each other`, async () => {
    const guard = await locks.lock(peer.key);
    assert.equal(await peer.attempt(), undefined);
    await guard.release();

    const release = await peer.attempt();
    assert.ok(release);
    assert.equal(await locks.tryLock(peer.key), undefined);
    const waiting = locks.lock(peer.key);
    await until(async () => (await locks.waiters(peer.key)).length === 1, "the lock is waited for");
    await release();
    await (await waiting).release();
  });

  test(`${name} and leasehold are never in the same section`, async () => {
    let inside = 0;
    let entered = 0;
    const section = async () => {
      inside += 1;
      assert.equal(inside, 1);
      await redis.ping();
      inside -= 1;
      entered += 1;
    };
    const ours = async () => {
      for (let turn = 0; turn < 20; turn++) await locks.using(peer.key, section);
    };
    const theirs = async () => {
      for (let turn = 0; turn < 20; turn++) {
        const release = await until(() => peer.attempt(), `${name} gets the lock`);
        await section();
        await release();
      }
    };
    await Promise.all([ours(), theirs(), ours(), theirs()]);
    assert.equal(entered, 80);
  });
}
