// The same instance as for CommonJS, so that a program that uses both has one set of clients and classes.
export {
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
} from "./index.cjs";
