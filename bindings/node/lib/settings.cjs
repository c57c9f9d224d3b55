// Settings as programs write them, for the native part: checked, and with times in seconds.
"use strict";

const wrong = (setting, value, expected) => {
  const shown = typeof value === "string" ? JSON.stringify(value) : String(value);
  return new TypeError(`${setting} is ${shown}, not ${expected}`);
};
const checked = (isRight, expected) => (setting, value) => {
  if (!isRight(value)) throw wrong(setting, value, expected);
  return value;
};
const text = checked((value) => typeof value === "string", "a string");
const array = checked(Array.isArray, "an array");
const flag = checked((value) => typeof value === "boolean", "a boolean");
const count = checked((value) => Number.isInteger(value) && value > 0 && value < 2 ** 32, "a whole number above 0");
const fence = checked((value) => Number.isSafeInteger(value) && value > 0, "a fence, which is a whole number above 0");
const millis = checked((value) => typeof value === "number" && value >= 0, "a number of milliseconds");
const span = (setting, value) => millis(setting, value) / 1000;

/** Returns a string in UTF-8, or bytes, as a buffer. */
function bytes(setting, value) {
  if (typeof value === "string") return Buffer.from(value);
  if (!(value instanceof Uint8Array)) throw wrong(setting, value, "a string or a Uint8Array");
  return Buffer.from(value.buffer, value.byteOffset, value.byteLength);
}

const HOW = { ttl: span, wait: span, maxHold: span, lockDelay: span, barging: flag };

/** The settings of each kind of request, and their checks. */
const LOCK = { ...HOW, shared: flag };
const SEMAPHORE = HOW;
const ONCE = { ...HOW, payload: bytes, retention: span };
const ELECTION = { ...HOW, value: text, pollInterval: span };

/** Returns `settings` for the native part. An unknown one is an error: it may be a misspelt `wait`. */
function options(known, settings) {
  if (settings === undefined) return undefined;
  if (settings === null || typeof settings !== "object") throw wrong("settings", settings, "an object");
  const request = {};
  for (const setting in settings) {
    const value = settings[setting];
    if (value === undefined || setting === "signal") continue;
    if (!Object.hasOwn(known, setting)) {
      throw new TypeError(`there is no setting ${JSON.stringify(setting)}, only ${Object.keys(known).join(", ")}, signal`);
    }
    request[setting] = known[setting](setting, value);
  }
  // A wait without end is the default.
  if (request.wait === Infinity) delete request.wait;
  return request;
}

module.exports = { LOCK, SEMAPHORE, ONCE, ELECTION, options, array, bytes, count, fence, span, text };
