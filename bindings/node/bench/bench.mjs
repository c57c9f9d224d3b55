// Compares with other libraries: `cargo xtask bindings node --bench`, or `bench.mjs [ROUNDS [SECONDS]]` by hand. The
// subjects take turns within each round, each in a process of its own, against one Redis server on this machine.
import { execFileSync, spawn } from "node:child_process";
import { createServer } from "node:net";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

const [rounds, seconds] = [Number(process.argv[2] ?? 5), Number(process.argv[3] ?? 1)];
const names = [
  "leasehold",
  "leasehold using",
  "node-redlock",
  "node-redlock using",
  "redis-semaphore",
  "ioredis SET, DEL",
];
const subject = fileURLToPath(new URL("subject.mjs", import.meta.url));

async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  return port;
}

const port = await freePort();
const redis = spawn("redis-server", ["--port", port, "--save", "", "--dir", "/tmp"], { stdio: ["ignore", "pipe", "inherit"] });
process.on("exit", () => redis.kill());
for await (const data of redis.stdout) if (String(data).includes("Ready to accept connections")) break;

const median = (values) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];
for (const calls of [1, 64]) {
  const results = new Map(names.map((name) => [name, []]));
  for (let round = 0; round < rounds; round++) {
    for (const name of names) {
      const out = execFileSync(process.execPath, [subject, name, port, seconds, calls], { encoding: "utf8" });
      results.get(name).push(Number(out));
    }
  }
  // The ratio of each round, which load from other programs changes less than the figures.
  const ratio = (name) => median(results.get(name).map((value, round) => value / results.get("node-redlock")[round]));
  console.log(`\n${calls} in flight | cycles/s, median of ${rounds} | all rounds | median ratio to node-redlock`);
  for (const name of names) {
    const values = results.get(name);
    console.log([name.padEnd(20), median(values), values.join(" "), ratio(name).toFixed(2)].join(" | "));
  }
}

// The server would keep the process alive.
process.exit();
