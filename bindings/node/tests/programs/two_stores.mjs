// Holds locks on two stores, and ends once its standard input is closed.
import { connect } from "leasehold";

for (const url of process.argv.slice(2)) await connect(url).lock("two-stores");
console.log("held");
process.stdin.on("end", () => process.exit(5)).resume();
