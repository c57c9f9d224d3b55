const { BusyError, connect } = require("leasehold");

test("lock is held until its release, and another is left held", async () => {
  const locks = connect(process.env.LEASEHOLD_URL);
  const guard = await locks.lock("jest");
  await expect(locks.lock("jest", { wait: 50 })).rejects.toThrow(BusyError);
  await guard.release();
  const left = await locks.lock(`${process.env.LEASEHOLD_PREFIX} by first`);
  expect(left.signal.aborted).toBe(false);
});
