// The errors that programs see.
"use strict";

/** What failed in Leasehold. `code` says what, as in `LEASEHOLD_BUSY`. */
class LeaseholdError extends Error {
  constructor(failure) {
    super(failure.text);
    this.code = `LEASEHOLD_${failure.kind.toUpperCase()}`;
    this.lock = failure.name ?? undefined;
    this.store = failure.store ?? undefined;
    this.reason = failure.reason ?? undefined;
    this.holder = failure.holder ?? undefined;
    this.members = Object.fromEntries(failure.members ?? []);
    this.effectUnknown = failure.effect_unknown ?? false;
    this.retryable = failure.retryable ?? false;
  }
}

/** Another client held the lock until the wait ended. */
class BusyError extends LeaseholdError {}

/** The lock was lost: the program no longer holds it. */
class LostError extends LeaseholdError {}

/** The store, or too many of its members, did not answer. */
class UnavailableError extends LeaseholdError {}

/** The client was closed. */
class ClosedError extends LeaseholdError {}

const CLASSES = {
  busy: BusyError,
  lost: LostError,
  no_quorum: UnavailableError,
  untrusted: UnavailableError,
  unreachable: UnavailableError,
  closed: ClosedError,
};

// On the prototype, so that an error has no property that hides the name of its class.
for (const Class of [LeaseholdError, ...new Set(Object.values(CLASSES))]) {
  Object.defineProperty(Class.prototype, "name", { value: Class.name, writable: true, configurable: true });
}

/** Returns the error for what the native part reports. */
function toError(failure) {
  return new (CLASSES[failure.kind] ?? LeaseholdError)(failure);
}

/** Returns the error of a lock that was lost for `reason`. */
function lostError(name, reason) {
  const text = `lock ${JSON.stringify(name)}: lost (${reason.replaceAll("_", " ")})`;
  return new LostError({ kind: "lost", text, name, reason });
}

module.exports = { LeaseholdError, BusyError, LostError, UnavailableError, ClosedError, toError, lostError };
