// Drops a guard without a release, and collects it.
import { setTimeout as sleep } from "node:timers/promises";
import { connect } from "leasehold";

const locks = connect(process.argv[2]);
process.on("warning", (warning) => console.log(warning.name, warning.code));
await locks.lock("forgotten");
const released = await locks.lock("released");
await released.release();
let warned = false;
process.on("warning", () => (warned = true));
while (!warned) {
  globalThis.gc();
  await sleep(5);
}
console.log("busy", (await locks.tryLock("forgotten")) === undefined);
