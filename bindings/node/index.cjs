// Distributed locks as leases. The types are in index.d.cts.
"use strict";
const { Client } = require("./lib/client.cjs");
const { Election, Leadership } = require("./lib/election.cjs");
const errors = require("./lib/errors.cjs");
const { closeOnSignals } = require("./lib/exit.cjs");
const { Guard, GuardSet } = require("./lib/guard.cjs");
const { Once, OnceRun } = require("./lib/once.cjs");

const { LeaseholdError, BusyError, LostError, UnavailableError, ClosedError } = errors;

/** Returns a client of the store at `url`. It connects at its first call. */
function connect(url, settings) {
  return new Client(url, settings);
}

// Node finds these names for `import { connect } from "leasehold"`.
module.exports = {
  connect,
  closeOnSignals,
  Client,
  Guard,
  GuardSet,
  Once,
  OnceRun,
  Election,
  Leadership,
  LeaseholdError,
  BusyError,
  LostError,
  UnavailableError,
  ClosedError,
};
