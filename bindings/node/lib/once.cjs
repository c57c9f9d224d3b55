// Requests that take effect once.
"use strict";
const { calls } = require("./calls.cjs");
const { BusyError } = require("./errors.cjs");
const { Hold } = require("./hold.cjs");
const { bytes, options, ONCE } = require("./settings.cjs");
const { runUnder } = require("./using.cjs");

class Once {
  #native;
  #name;
  #request;

  constructor(native, name, settings) {
    this.#native = native;
    this.#name = name;
    this.#request = options(ONCE, settings) ?? {};
  }

  get name() {
    return this.#name;
  }

  /** Runs `routine` unless the request is done, and returns the result. */
  async run(routine, { signal } = {}) {
    const start = await this.begin({ signal });
    if (start.state === "done") return start.result;
    if (start.state === "in_progress") {
      const text = `${JSON.stringify(this.name)}: another caller is running this request`;
      throw new BusyError({ kind: "busy", text, name: this.name, holder: start.holder?.text, retryable: true });
    }
    const { run } = start;
    // A commit is safe after a loss, too: the store refuses it if another attempt has begun.
    return runUnder(run, routine, (output) => run.commit(output));
  }

  begin({ signal } = {}) {
    return this.#begin(false, signal);
  }

  tryBegin({ signal } = {}) {
    return this.#begin(true, signal);
  }

  async #begin(isTry, signal) {
    const begin = (loop, id) => this.#native.beginOnce(loop, id, this.#name, isTry, this.#request);
    const start = await calls.start(begin, signal);
    return start.state ? start : { state: "run", run: new OnceRun(start) };
  }

  result() {
    return calls.start((loop, id) => this.#native.onceResult(loop, id, this.#name, this.#request));
  }

  forget() {
    return calls.start((loop, id) => this.#native.forgetOnce(loop, id, this.#name, this.#request));
  }
}

/** An attempt at a request. Its release leaves the request to the next caller. */
class OnceRun extends Hold {
  async commit(result) {
    const committed = bytes("the result", result);
    return this._end((loop, id) => this._native.commit(loop, id, committed));
  }
}

module.exports = { Once, OnceRun };
