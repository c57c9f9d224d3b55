// A worker thread that holds a lock, and one more call that waits for it.
import { parentPort, workerData } from "node:worker_threads";
import { connect } from "leasehold";

const { url, name, waits, stays } = workerData;
const locks = connect(url);
const guard = await locks.lock(name);
void guard.signal;
if (waits) locks.lock(name).catch(() => {});
parentPort.postMessage(guard.fence);
if (stays) setInterval(() => {}, 1000);
else if (waits) process.exit();
