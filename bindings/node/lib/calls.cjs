// The calls of this thread that are under way, as promises.
//
// The native part polls the futures of the core on this thread. A thread of the core that has an answer only asks Node to
// run `#run` soon. Cancelling a call drops its future, and the core then withdraws the request from the store.
"use strict";
const native = require("./native.cjs");
const { toError } = require("./errors.cjs");
const { toValue } = require("./values.cjs");

class Calls {
  #native;
  #pending = new Map();
  #last = 0;
  #reasonsToStay = 0;
  #timer;

  // Made at the first call, so that a program that only imports the package opens no handle.
  get #loop() {
    return (this.#native ??= new native.Loop(() => this.#run()));
  }

  /** Starts a call and returns its output. The parameters are those of `begin`. */
  async start(start, signal, background) {
    return outputOf(await this.begin(start, signal, background));
  }

  /**
   * Starts a call, and returns its end or a promise of it, for `outputOf`. `start` gets the loop and the number of the call.
   * The call ends early if `signal` is aborted. A call in the background does not keep the process alive.
   */
  begin(start, signal, background = false) {
    signal?.throwIfAborted();
    const id = ++this.#last;
    const begun = start(this.#loop, id);
    return typeof begun === "number" ? this.#ended(id, begun, signal, background) : begun;
  }

  #ended(id, number, signal, background) {
    return new Promise((resolve, reject) => {
      const call = { resolve, signal, background, onAbort: undefined };
      this.#pending.set(id, call);
      if (!background) this.keepAlive();
      if (!signal) return;
      call.onAbort = () => {
        this.#loop.cancel(number);
        this.#forget(id, call);
        reject(signal.reason);
      };
      signal.addEventListener("abort", call.onAbort, { once: true });
    });
  }

  /** Keeps the process alive until as many calls of `letEnd`. */
  keepAlive() {
    this.#reasonsToStay += 1;
    // A timer only while something is under way: Jest reports every open handle.
    this.#timer ??= setInterval(() => {}, 0x7fffffff);
  }

  letEnd() {
    this.#reasonsToStay -= 1;
    if (this.#reasonsToStay === 0) this.#timer = clearInterval(this.#timer);
  }

  /** Drops all calls without settling their promises: for the end of the thread. */
  drop() {
    this.#native?.clear();
    this.#pending.clear();
  }

  #run() {
    for (const ended of this.#loop.run()) {
      const call = this.#pending.get(ended.id);
      this.#forget(ended.id, call);
      call.resolve(ended);
    }
    this.#loop.forgotten()?.forEach(warnUnreleased);
  }

  #forget(id, call) {
    this.#pending.delete(id);
    if (call.onAbort) call.signal.removeEventListener("abort", call.onAbort);
    if (!call.background) this.letEnd();
  }
}

/**
 * Returns the output of a call that has ended, or throws its error. Called after an `await`, so that the stack of the error
 * has the callers.
 */
function outputOf({ failure, hold, text, json }) {
  if (failure) throw toError(JSON.parse(failure));
  return json ? toValue(JSON.parse(json)) : (hold ?? text);
}

function warnUnreleased(name) {
  const text =
    `the guard of lock ${JSON.stringify(name)} was garbage-collected before its release. The lock stays held until the ` +
    "client is closed or the process ends. Call release(), or use `await using` or client.using().";
  process.emitWarning(text, { type: "LeaseholdWarning", code: "LEASEHOLD_UNRELEASED" });
}

module.exports = { calls: new Calls(), outputOf };
