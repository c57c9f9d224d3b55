// Ends in the way of its second argument, with a held lock and a call that waits for it.
import { closeOnSignals, connect } from "leasehold";

const [url, how] = process.argv.slice(2);
const locks = connect(url);
const guard = await locks.lock(`ends-${how}`);
void guard.signal;
if (how !== "end") locks.lock(`ends-${how}`).catch(() => {});
if (how.startsWith("close-on-")) closeOnSignals();
if (how === "close-on-handled") {
  process.on("SIGTERM", () => {
    console.log("handled");
    process.exit(7);
  });
}
console.log("held");
switch (how) {
  case "end":
    break;
  case "exit":
    process.exit(3);
    break;
  case "throw":
    throw new Error("uncaught");
  case "reject":
    void Promise.reject(new Error("unhandled"));
    break;
  default: // A signal ends it.
    setInterval(() => {}, 1000);
}
