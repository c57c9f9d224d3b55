// Enters a section that a lock protects, again and again. A file that is made and removed inside shows two at once.
import { closeSync, openSync, readFileSync, unlinkSync, writeFileSync } from "node:fs";
import { connect } from "leasehold";

const [url, folder, turns] = process.argv.slice(2);
const locks = connect(url);
for (let turn = 0; turn < Number(turns); turn++) {
  await locks.using("section", { ttl: 3000 }, async (signal, guard) => {
    closeSync(openSync(`${folder}/inside`, "wx")); // Fails if another process is inside.
    const [count, fence] = readFileSync(`${folder}/count`, "utf8").split(" ").map(Number);
    if (!(guard.fence > fence)) throw new Error(`fence ${guard.fence} after ${fence}`);
    await new Promise(setImmediate);
    writeFileSync(`${folder}/count`, `${count + 1} ${guard.fence}\n`);
    unlinkSync(`${folder}/inside`);
  });
}
console.log("done");
