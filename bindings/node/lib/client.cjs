// A client.
"use strict";
const native = require("./native.cjs");
const { calls, outputOf } = require("./calls.cjs");
const { Election } = require("./election.cjs");
const { toError } = require("./errors.cjs");
const { closeAtExit, closeNative } = require("./exit.cjs");
const { Guard, GuardSet } = require("./guard.cjs");
const { asyncDispose } = require("./hold.cjs");
const { Once } = require("./once.cjs");
const { array, count, fence, options, span, text, LOCK, SEMAPHORE } = require("./settings.cjs");
const { runUnder } = require("./using.cjs");

class Client {
  #native;

  constructor(url, { label } = {}) {
    const urls = Array.isArray(url) ? url : [url];
    urls.forEach((one) => text("the URL", one));
    if (label !== undefined) text("label", label);
    try {
      this.#native = new native.Client(urls.join(","), label);
    } catch (error) {
      throw toError(JSON.parse(error.message));
    }
    closeAtExit(this.#native);
  }

  lock(name, settings) {
    return this.#acquire(Guard, name, undefined, false, LOCK, settings);
  }

  tryLock(name, settings) {
    return this.#acquire(Guard, name, undefined, true, LOCK, settings);
  }

  semaphore(name, permits, settings) {
    return this.#acquire(Guard, name, permits ?? null, false, SEMAPHORE, settings);
  }

  trySemaphore(name, permits, settings) {
    return this.#acquire(Guard, name, permits ?? null, true, SEMAPHORE, settings);
  }

  lockAll(names, settings) {
    return this.#acquire(GuardSet, names, undefined, false, LOCK, settings);
  }

  tryLockAll(names, settings) {
    return this.#acquire(GuardSet, names, undefined, true, LOCK, settings);
  }

  async #acquire(Held, names, permits, isTry, known, settings) {
    if (Held === GuardSet) array("names", names).forEach((name) => text("name", name));
    else text("name", names);
    if (permits !== undefined) count("permits", permits);
    const request = options(known, settings);
    const acquire = (loop, id) => this.#native.acquire(loop, id, names, permits, isTry, request);
    const hold = outputOf(await calls.begin(acquire, settings?.signal));
    return hold && new Held(hold);
  }

  async using(names, settings, routine) {
    if (typeof settings === "function") [settings, routine] = [undefined, settings];
    if (typeof routine !== "function") throw new TypeError("using() needs a function to run");
    const hold = await (Array.isArray(names) ? this.lockAll(names, settings) : this.lock(names, settings));
    return runUnder(hold, routine, async (output) => {
      await hold[asyncDispose]();
      return output;
    });
  }

  once(name, settings) {
    return new Once(this.#native, text("name", name), settings);
  }

  election(name, settings) {
    return new Election(this.#native, text("name", name), settings);
  }

  async holders(name) {
    text("name", name);
    return calls.start((loop, id) => this.#native.holders(loop, id, name));
  }

  async waiters(name) {
    text("name", name);
    return calls.start((loop, id) => this.#native.waiters(loop, id, name));
  }

  async listLocks(pattern = "*", { limit = 1000 } = {}) {
    text("pattern", pattern);
    count("limit", limit);
    return calls.start((loop, id) => this.#native.listLocks(loop, id, pattern, limit));
  }

  async init() {
    try {
      return await this.#native.init();
    } catch (error) {
      throw toError(JSON.parse(error.message));
    }
  }

  async health() {
    return calls.start((loop, id) => this.#native.health(loop, id));
  }

  async breakLock(name, lockFence, { atOnce = false, user, reason } = {}) {
    const request = { name: text("name", name), fence: fence("fence", lockFence), atOnce, user, reason };
    return calls.start((loop, id) => this.#native.breakLock(loop, id, request));
  }

  async adopt(handle, { signal } = {}) {
    text("handle", handle);
    return new Guard(await calls.start((loop, id) => this.#native.adopt(loop, id, handle), signal));
  }

  async renewHandle(handle) {
    text("handle", handle);
    return calls.start((loop, id) => this.#native.renewHandle(loop, id, handle));
  }

  async releaseHandle(handle) {
    text("handle", handle);
    return calls.start((loop, id) => this.#native.releaseHandle(loop, id, handle));
  }

  async close({ limit = 5000 } = {}) {
    span("limit", limit);
    return closeNative(this.#native, limit);
  }

  async [asyncDispose]() {
    await this.close();
  }
}

module.exports = { Client };
