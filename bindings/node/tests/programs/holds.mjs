// Holds a lock until it is killed.
import { connect } from "leasehold";

const [url, name, ttl] = process.argv.slice(2);
const guard = await connect(url).lock(name, { ttl: Number(ttl) });
console.log(`holds ${guard.fence}`);
setInterval(() => {}, 1000);
