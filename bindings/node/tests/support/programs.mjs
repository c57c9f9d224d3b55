// Programs that the tests run as child processes.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

const folder = fileURLToPath(new URL("../programs/", import.meta.url));

/** A child process, with what it printed. */
export class Program {
  #wanted = [];

  constructor(command, args, options = {}) {
    this.out = "";
    this.err = "";
    this.child = spawn(command, args, { stdio: ["pipe", "pipe", "pipe"], ...options });
    this.child.stdout.on("data", (data) => this.#add("out", data));
    this.child.stderr.on("data", (data) => this.#add("err", data));
    this.exit = once(this.child, "close").then(([code, signal]) => {
      this.#wanted.forEach((wanted) => wanted.reject(new Error(`ended with ${code ?? signal} before ${wanted.text}:\n${this.out}${this.err}`)));
      return { code, signal };
    });
  }

  /** Resolves once the program has printed `text`. */
  printed(text) {
    if (this.out.includes(text)) return Promise.resolve();
    return new Promise((resolve, reject) => this.#wanted.push({ text, resolve, reject }));
  }

  #add(stream, data) {
    this[stream] += data;
    this.#wanted = this.#wanted.filter(({ text, resolve }) => !this.out.includes(text) || resolve());
  }
}

/** Runs `programs/NAME.mjs` with these arguments. */
export function run(name, ...args) {
  return new Program(process.execPath, [folder + name, ...args]);
}

/** The Python that has the package `leasehold`, if its binding was built, too. */
export const python = process.env.LEASEHOLD_TEST_PYTHON_BINDING;

/** Runs `programs/NAME.py` with these arguments. */
export function runPython(name, ...args) {
  return new Program(python, [folder + name, ...args]);
}

/** Runs the command `leasehold` on the store at `url`. */
export function leasehold(url, ...args) {
  const program = process.env.LEASEHOLD_TEST_COMMAND;
  if (!program) throw new Error("LEASEHOLD_TEST_COMMAND is not set: run the tests by `cargo xtask bindings node`");
  return new Program(program, args, { env: { ...process.env, LEASEHOLD_STORE: url } });
}
