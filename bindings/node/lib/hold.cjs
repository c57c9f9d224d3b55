// What a program holds: a lock, several locks, a leadership, or the run of a request.
"use strict";
const { calls, outputOf } = require("./calls.cjs");
const { lostError, toError } = require("./errors.cjs");
const { span } = require("./settings.cjs");

// Node 18 may lack `Symbol.asyncDispose`. Compilers then use this symbol.
const asyncDispose = Symbol.asyncDispose ?? Symbol.for("Symbol.asyncDispose");

class Hold {
  #native;
  #controller;
  #released;

  constructor(native) {
    this.#native = native;
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
    return (this.#released ??= this.#release());
  }

  async #release() {
    const { lostReason } = this.#native;
    const ended = await calls.begin((loop, id) => this.#native.release(loop, id));
    // After a loss nothing is left to free. An error in a `finally` would hide the error of the block.
    if (ended.failure && lostReason) return "was_lost";
    return outputOf(ended);
  }

  /** Ends the hold in another way than a release. */
  _end(start) {
    return (this.#released ??= calls.start(start));
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
  const [name] = native.names;
  const { lostReason } = native;
  if (lostReason) controller.abort(lostError(name, lostReason));
  else abortAtLoss(controller, name, endOf(native));
  return controller;
}

// Functions of their own: what one of their closures used would stay as long as the other, and so the garbage collector
// would never find a guard that is watched.
function endOf(native) {
  return calls.begin((loop, id) => native.ended(loop, id), undefined, true);
}

async function abortAtLoss(controller, name, ended) {
  const { text: reason } = await ended;
  if (reason) controller.abort(lostError(name, reason));
}

/** Returns the value of what the native part returned at once. */
function orThrow({ failure, value }) {
  if (failure) throw toError(JSON.parse(failure));
  return value;
}

module.exports = { Hold, asyncDispose, orThrow };
