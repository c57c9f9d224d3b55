// A block that waits for nothing but the loss of its lock.
import { once } from "node:events";
import { connect } from "leasehold";

const locks = connect(process.argv[2]);
try {
  await locks.using("only-signal", { maxHold: 300 }, (signal) => once(signal, "abort"));
} catch (error) {
  console.log(error.name);
}
