// Drops a guard without a release, and collects it: as a process, or as a worker thread that then stays.
import { setTimeout as sleep } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { parentPort, workerData } from "node:worker_threads";
import { connect } from "leasehold";

setFlagsFromString("--expose_gc");
const gc = runInNewContext("gc");
const [url, name] = workerData ?? process.argv.slice(2);
const locks = connect(url);
let warning;
process.on("warning", (it) => (warning = it));
await locks.lock(name);
await (await locks.lock("released")).release();
const lost = await locks.lock("lost", { maxHold: 1 });
await locks.lock(`${name}, watched`).then((guard) => void guard.signal);
await sleep(5);
await lost.release();
const warnings = [];
process.on("warning", ({ message }) => warnings.push(message));
while (warnings.length < 2) {
  gc();
  await sleep(5);
}
console.log(warning.name, warning.code, (await locks.tryLock(name)) === undefined);
warnings.sort().forEach((message) => console.log(message.match(/^[^.]*/)[0]));
if (parentPort) {
  parentPort.postMessage("collected");
  setInterval(() => {}, 1000);
}
