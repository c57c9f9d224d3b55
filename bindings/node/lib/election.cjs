// Elections of a leader.
"use strict";
const { calls } = require("./calls.cjs");
const { toError } = require("./errors.cjs");
const { Hold } = require("./hold.cjs");
const { options, text, ELECTION } = require("./settings.cjs");

class Election {
  #native;
  #name;
  #request;

  constructor(native, name, settings) {
    this.#native = native;
    this.#name = name;
    this.#request = options(ELECTION, settings) ?? {};
  }

  get name() {
    return this.#name;
  }

  async campaign({ signal } = {}) {
    const campaign = (loop, id) => this.#native.campaign(loop, id, this.#name, this.#request);
    return new Leadership(await calls.start(campaign, signal));
  }

  leader() {
    return calls.start((loop, id) => this.#native.leader(loop, id, this.#name, this.#request));
  }

  /** Yields the leader, and then each change. Ends when the client is closed. */
  async *observe({ signal } = {}) {
    let watch;
    try {
      watch = this.#native.observe(this.#name, this.#request);
    } catch (error) {
      throw toError(JSON.parse(error.message));
    }
    for (;;) {
      const change = await calls.start((loop, id) => watch.next(loop, id), signal);
      if (change === undefined) return;
      yield change;
    }
  }
}

class Leadership extends Hold {
  // The announcement is repeated until this is aborted.
  #resigned = new AbortController();

  constructor(native) {
    super(native);
    const repeat = (loop, id) => native.keepAnnounced(loop, id);
    calls.start(repeat, this.#resigned.signal, true).catch(() => {});
  }

  async publish(value) {
    text("value", value);
    return calls.start((loop, id) => this._native.publish(loop, id, value));
  }

  release() {
    this.#resigned.abort();
    return super.release();
  }

  resign() {
    return this.release();
  }
}

module.exports = { Election, Leadership };
