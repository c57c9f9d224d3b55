// What a program holds: a lock, several locks, a leadership, or the run of a request.
"use strict";
const calls = require("./calls.cjs");
const { lostError, toError } = require("./errors.cjs");
const { span } = require("./settings.cjs");

// Node 18 may lack `Symbol.asyncDispose`. Compilers then use this symbol.
const asyncDispose = Symbol.asyncDispose ?? Symbol.for("Symbol.asyncDispose");

// All that this thread holds. Without this, the lock of a guard that the program has dropped would become free whenever
// the garbage collector runs.
const held = new Set();

const unreleased = new FinalizationRegistry((native) => {
  if (!held.has(native)) return;
  if (!native.isValid) {
    held.delete(native);
    return;
  }
  const text =
    `the guard of lock ${JSON.stringify(native.names[0])} was garbage-collected before its release. The lock stays held ` +
    "until the client is closed or the process ends. Call release(), or use `await using` or client.using().";
  process.emitWarning(text, { type: "LeaseholdWarning", code: "LEASEHOLD_UNRELEASED" });
});

class Hold {
  #native;
  #controller;
  #released;

  constructor(native) {
    this.#native = native;
    held.add(native);
    unreleased.register(this, native);
  }

  /** The native part, for subclasses. */
  get _native() {
    return this.#native;
  }

  get name() {
    return this.#native.names[0];
  }

  get fence() {
    return this.#native.fences[0];
  }

  get valid() {
    return this.#native.isValid;
  }

  get remaining() {
    return this.#native.remaining * 1000;
  }

  get lostReason() {
    return this.#native.lostReason ?? undefined;
  }

  get signal() {
    return (this.#controller ??= watch(this.#native)).signal;
  }

  ensure(ms = 0) {
    const failure = this.#native.ensure(span("ms", ms));
    if (failure) throw toError(JSON.parse(failure));
  }

  release() {
    // After a loss nothing is left to free. An error in a `finally` would hide the error of the block.
    return this._end((loop, id) => this.#native.release(loop, id), (error, lostReason) => {
      if (lostReason) return "was_lost";
      throw error;
    });
  }

  /** Ends the hold by the call that `begin` starts. Further calls return the same outcome. */
  _end(begin, onError) {
    return (this.#released ??= this.#leave(begin, onError));
  }

  #leave(begin, onError) {
    const { lostReason } = this;
    held.delete(this.#native);
    const ended = calls.start(begin);
    return onError ? ended.catch((error) => onError(error, lostReason)) : ended;
  }

  /** Ends a block: throws a `LostError` if the lock was lost during it. */
  async [asyncDispose]() {
    if (this.#released) return;
    const { name, lostReason } = this;
    // The work is done, under the lock. A release that failed is repeated in the background.
    await this.release().catch(() => {});
    if (lostReason) throw lostError(name, lostReason);
  }
}

/** Returns a controller that aborts its signal when the lock is lost. */
function watch(native) {
  const controller = new AbortController();
  const abort = (reason) => controller.abort(lostError(native.names[0], reason));
  const { lostReason } = native;
  if (lostReason) {
    abort(lostReason);
  } else {
    const ended = calls.start((loop, id) => native.ended(loop, id), { background: true });
    ended.then((reason) => reason && abort(reason), () => {});
  }
  return controller;
}

/** Returns the value of what the native part returned at once. */
function orThrow({ failure, value }) {
  if (failure) throw toError(JSON.parse(failure));
  return value;
}

module.exports = { Hold, asyncDispose, orThrow };
