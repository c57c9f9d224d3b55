// Loses a lock whose signal and whose release are not looked at.
import { connect } from "leasehold";

const locks = connect(process.argv[2]);
const guard = await locks.lock("unobserved", { maxHold: 20 });
const lost = () => console.log("lost", guard.lostReason);
if (guard.signal.aborted) lost();
else guard.signal.addEventListener("abort", lost);
const watched = await locks.lock("watched", { maxHold: 20 });
void watched.signal;
await locks.lock("unwatched", { maxHold: 20 });
while (!guard.signal.aborted || !watched.signal.aborted) await new Promise((resolve) => setTimeout(resolve, 5));
