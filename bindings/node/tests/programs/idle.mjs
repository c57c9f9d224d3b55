// Prints what keeps the process alive while a lock is held and watched; it must end by itself.
import { connect } from "leasehold";

const locks = connect(process.argv[2]);
const shown = () => process.getActiveResourcesInfo().filter((name) => !/^(Pipe|TTY|FS|CloseReq)/.test(name));
console.log("imported", JSON.stringify(shown()));
const guard = await locks.lock("idle");
void guard.signal;
const busy = locks.lock("idle", { wait: 50 }).catch((error) => error.name);
console.log("waiting", JSON.stringify(shown()));
console.log(await busy, JSON.stringify(shown()));
