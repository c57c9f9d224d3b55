// Values of the native part, as programs see them.
"use strict";
const { toError } = require("./errors.cjs");

// Spans are in seconds there.
const SPANS = new Set(["remaining", "closedFor", "eligibleAfter"]);

const FIELDS = {
  since: (value) => new Date(value * 1000),
  bytes: (value) => Buffer.from(value),
  error: toError,
};

/** Returns `value` with the names of JavaScript, times in ms, dates, buffers and errors, and no null. */
function toValue(value) {
  if (Array.isArray(value)) return value.map(toValue);
  if (value === null) return undefined;
  if (typeof value !== "object") return value;
  const fields = Object.entries(value).flatMap(([key, field]) => {
    if (field === null) return [];
    const name = key.replace(/_([a-z])/g, (_, letter) => letter.toUpperCase());
    if (SPANS.has(name)) return [[name, field * 1000]];
    return [[name, (FIELDS[name] ?? toValue)(field)]];
  });
  return Object.fromEntries(fields);
}

module.exports = { toValue };
