/// <reference lib="esnext.disposable" />
/// <reference types="node" />

/** How to acquire and hold a lock. All times are in milliseconds. */
export interface HoldSettings {
  /** How long the lock outlives this process if it dies. The client renews it long before. Default: 30 000. */
  ttl?: number;
  /** How long to wait for the lock; then the call throws a {@link BusyError}. Default: without end. */
  wait?: number;
  /** The maximum hold time. The lock counts as lost afterwards, however often it is renewed. */
  maxHold?: number;
  /** How much longer the lock stays closed to others if its holder dies or loses it. */
  lockDelay?: number;
  /** Whether to acquire the lock ahead of the queue. */
  barging?: boolean;
}

/** Ends a call early: the call then throws the reason of the signal, and the store forgets the request. */
export interface Abortable {
  signal?: AbortSignal | undefined;
}

export interface LockSettings extends HoldSettings, Abortable {
  /** Whether other shared holders may hold the lock too. Default: false. */
  shared?: boolean;
}

export interface SemaphoreSettings extends HoldSettings, Abortable {}

/** Settings of a call that does not wait for the holder of a lock. */
export type TrySettings<Settings extends HoldSettings> = Omit<Settings, "wait">;

export interface OnceSettings extends HoldSettings {
  /** What is asked for, in any form that is the same for the same request. Default: empty. */
  payload?: string | Uint8Array;
  /** How long the store keeps the result. Default: 24 hours. */
  retention?: number;
}

export interface ElectionSettings extends HoldSettings {
  /** What the leader publishes, for example its address. */
  value?: string;
  /** The pause between two reads of an observer. Default: 1 000. */
  pollInterval?: number;
}

/**
 * The outcome of a release. `was_lost`: the lock was lost before, and the release affected no other holder. `still_held`:
 * the lock was entered more than once, or detached as a handle.
 */
export type ReleaseOutcome = "released" | "was_lost" | "still_held";

/** Why a lock was lost. */
export type LostReason =
  | "expired"
  | "unreachable"
  | "paused"
  | "taken"
  | "gone"
  | "broken"
  | "max_hold"
  | "given_up"
  | "closed"
  | (string & {});

/** What a {@link Guard}, a {@link GuardSet}, a {@link Leadership} and a {@link OnceRun} have in common. */
export interface Hold extends AsyncDisposable {
  /** The name of the lock; of a set, the first one. */
  readonly name: string;
  /** The fencing token: greater than that of each earlier holder, and at most 2^53 - 1. */
  readonly fence: number;
  /** Whether the lock is held at this instant. Once false, it stays false. */
  readonly valid: boolean;
  /** The time for which the lock is held even if no renewal succeeds, in ms. `Infinity` for a lock file. */
  readonly remaining: number;
  /** Why the lock was lost; undefined while it is held, and after a release. */
  readonly lostReason: LostReason | undefined;
  /** Is aborted with a {@link LostError} when the lock is lost. It is not aborted by a release. */
  readonly signal: AbortSignal;
  /**
   * Throws unless the lock is held for `ms` more, even if no renewal succeeds. Call it before each step that must not
   * happen without the lock.
   */
  ensure(ms?: number): void;
  /**
   * Releases the lock, and resolves once the store has confirmed it. Further calls return the same promise. Rejects only
   * if the store did not answer; the client then repeats the release, and the TTL frees the lock at the latest.
   */
  release(): Promise<ReleaseOutcome>;
  /** Ends an `await using` block: releases, and throws a {@link LostError} if the lock was lost during the block. */
  [Symbol.asyncDispose](): Promise<void>;
}

/** A held lock, until it is released or lost. */
export class Guard implements Hold {
  private constructor();
  readonly name: string;
  readonly fence: number;
  readonly valid: boolean;
  readonly remaining: number;
  readonly lostReason: LostReason | undefined;
  readonly signal: AbortSignal;
  ensure(ms?: number): void;
  release(): Promise<ReleaseOutcome>;
  [Symbol.asyncDispose](): Promise<void>;
  /** Renews the lease now. The client does so in time by itself. */
  renew(): Promise<void>;
  /** Turns an exclusive lock into a shared one, without a gap in which another client could hold it. */
  downgrade(): Promise<void>;
  /** Enters the lock once more: it is released with the last of its guards. */
  reenter(): Promise<Guard>;
  /** Returns a text with which another process can release the lock, or adopt it. Treat it as a secret. */
  handle(): string;
  /** Detaches the lock from this guard, and leaves it held for the rest of its TTL. Returns the text for `client.adopt`. */
  intoHandle(): string;
}

/** Several held locks. They are valid together: if one is lost, the set is lost. */
export class GuardSet implements Hold {
  private constructor();
  readonly name: string;
  readonly fence: number;
  readonly valid: boolean;
  readonly remaining: number;
  readonly lostReason: LostReason | undefined;
  readonly signal: AbortSignal;
  ensure(ms?: number): void;
  release(): Promise<ReleaseOutcome>;
  [Symbol.asyncDispose](): Promise<void>;
  /** The fence of each lock, by name. */
  readonly fences: Record<string, number>;
}

/** The result of a request that took effect once. */
export interface OnceResult {
  readonly bytes: Buffer;
  /** The fence of the attempt that committed it. */
  readonly fence: number;
  /** How much longer the store keeps it, in ms. */
  readonly remaining: number;
}

/** The state of a request for one caller. */
export type OnceStart =
  | { readonly state: "run"; readonly run: OnceRun }
  | { readonly state: "done"; readonly result: OnceResult }
  | { readonly state: "in_progress"; readonly holder?: Holder };

/** A request that takes effect once, however often and by however many callers it is made. */
export class Once {
  private constructor();
  readonly name: string;
  /**
   * Runs `routine` unless the request is done, commits what it returns, and returns the result. If the routine throws,
   * nothing is committed, and the next caller runs the request again.
   */
  run(
    routine: (signal: AbortSignal, run: OnceRun) => Promise<string | Uint8Array>,
    settings?: Abortable,
  ): Promise<OnceResult>;
  /** Determines whether this caller runs the request, and waits for a caller that is running it. */
  begin(settings?: Abortable): Promise<OnceStart>;
  /** Like {@link begin}, without waiting. */
  tryBegin(settings?: Abortable): Promise<OnceStart>;
  /** Returns the result if the request is done. */
  result(): Promise<OnceResult | undefined>;
  /** Forgets the request, and returns whether there was anything to forget. */
  forget(): Promise<boolean>;
}

/** An attempt at a request. A release without a commit leaves the request to the next caller. */
export class OnceRun implements Hold {
  private constructor();
  readonly name: string;
  readonly fence: number;
  readonly valid: boolean;
  readonly remaining: number;
  readonly lostReason: LostReason | undefined;
  readonly signal: AbortSignal;
  ensure(ms?: number): void;
  release(): Promise<ReleaseOutcome>;
  [Symbol.asyncDispose](): Promise<void>;
  /** Commits the result, and releases the lock. */
  commit(result: string | Uint8Array): Promise<OnceResult>;
}

/** The leader of an election. */
export interface Leader {
  readonly owner: string;
  readonly client?: ClientInfo;
  readonly fence: number;
  /** What the leader publishes. */
  readonly value: string;
  readonly since: Date;
}

/** A change of the leader. Without a leader and an error, nobody leads. */
export interface LeaderChange {
  readonly leader?: Leader;
  /** Why the leader is unknown. */
  readonly error?: LeaseholdError;
}

/** An election of one leader among many candidates. */
export class Election {
  private constructor();
  readonly name: string;
  /** Waits until this client leads. */
  campaign(settings?: Abortable): Promise<Leadership>;
  /** Returns the current leader. */
  leader(): Promise<Leader | undefined>;
  /** Yields the leader, and then each change, until the client is closed. */
  observe(settings?: Abortable): AsyncGenerator<LeaderChange, void, void>;
}

/** The leadership of this client, until it resigns or is lost. */
export class Leadership implements Hold {
  private constructor();
  readonly name: string;
  readonly fence: number;
  readonly valid: boolean;
  readonly remaining: number;
  readonly lostReason: LostReason | undefined;
  readonly signal: AbortSignal;
  ensure(ms?: number): void;
  release(): Promise<ReleaseOutcome>;
  [Symbol.asyncDispose](): Promise<void>;
  /** Publishes another value. */
  publish(value: string): Promise<void>;
  /** Ends the leadership. The same as {@link release}. */
  resign(): Promise<ReleaseOutcome>;
}

/** A client's description of itself. */
export interface ClientInfo {
  readonly id: string;
  readonly host: string;
  readonly pid: number;
  readonly program: string;
  readonly user?: string;
  readonly label?: string;
  readonly command?: string;
}

/** A holder of a lock. */
export interface Holder {
  /** A description, for people. */
  readonly text: string;
  readonly mode: "exclusive" | "shared" | "permit";
  /** The number of permits of the semaphore. */
  readonly permits?: number;
  readonly owner?: string;
  readonly client?: ClientInfo;
  readonly fence?: number;
  readonly since?: Date;
  /** The time until the lease ends unless it is renewed, in ms. */
  readonly remaining?: number;
  /** Whether an operator broke the lease. */
  readonly broken: boolean;
}

/** A waiter for a lock. */
export interface Waiter {
  readonly text: string;
  readonly mode: "exclusive" | "shared" | "permit";
  readonly permits?: number;
  readonly owner: string;
  readonly client?: ClientInfo;
  readonly since: Date;
}

/** The held locks of a store. */
export interface LockListing {
  readonly locks: readonly { readonly name: string; readonly holders: readonly Holder[] }[];
  /** Whether there are more locks than the limit. */
  readonly more: boolean;
  /** Whether a majority of the members answered. */
  readonly hasMajority: boolean;
}

/** A member of the store. */
export interface Member {
  readonly id: string;
  readonly hasVote: boolean;
  readonly durable: boolean;
  /** Why it has no vote. */
  readonly error?: LeaseholdError;
  /** When it may have a vote again, in ms. */
  readonly eligibleAfter?: number;
}

export interface BreakSettings {
  /** Whether others may acquire the lock before the lease ends. Default: false. */
  atOnce?: boolean;
  /** Who breaks it, for the record. */
  user?: string;
  /** Why, for the record. */
  reason?: string;
}

export interface BreakOutcome {
  /** `free`: no client holds the lock. `held_by`: none of the holders has the fence. */
  readonly outcome: "done" | "free" | "held_by";
  /** How much longer the lock stays closed, in ms. */
  readonly closedFor?: number;
  readonly holders: readonly Holder[];
}

export interface ClientSettings {
  /** A name for this client, which `holders` and the command `leasehold` show. */
  label?: string;
}

/** A client of one store. It is safe to keep one for the whole process. */
export class Client implements AsyncDisposable {
  /** Checks the URL, and connects at the first call. Several URLs are a quorum of Redis servers. */
  constructor(url: string | readonly string[], settings?: ClientSettings);

  /** Waits for the lock and acquires it. */
  lock(name: string, settings?: LockSettings): Promise<Guard>;
  /** Acquires the lock if it is free; resolves with undefined if another client holds it. */
  tryLock(name: string, settings?: TrySettings<LockSettings>): Promise<Guard | undefined>;
  /** Waits for one of `permits` permits of the semaphore. */
  semaphore(name: string, permits: number, settings?: SemaphoreSettings): Promise<Guard>;
  /** Acquires a permit if one is free. */
  trySemaphore(
    name: string,
    permits: number,
    settings?: TrySettings<SemaphoreSettings>,
  ): Promise<Guard | undefined>;
  /** Waits for all of the locks. Callers with overlapping names do not block each other for ever. */
  lockAll(names: readonly string[], settings?: LockSettings): Promise<GuardSet>;
  /** Acquires all of the locks if they are free, or none. */
  tryLockAll(names: readonly string[], settings?: TrySettings<LockSettings>): Promise<GuardSet | undefined>;

  /**
   * Runs `routine` under the lock and releases it. The signal of the routine is aborted if the lock is lost. Rejects with
   * the error of the routine, or with a {@link LostError} if the lock was lost and the routine succeeded.
   */
  using<T>(name: string, routine: (signal: AbortSignal, guard: Guard) => Promise<T>): Promise<T>;
  using<T>(
    name: string,
    settings: LockSettings,
    routine: (signal: AbortSignal, guard: Guard) => Promise<T>,
  ): Promise<T>;
  using<T>(names: readonly string[], routine: (signal: AbortSignal, guards: GuardSet) => Promise<T>): Promise<T>;
  using<T>(
    names: readonly string[],
    settings: LockSettings,
    routine: (signal: AbortSignal, guards: GuardSet) => Promise<T>,
  ): Promise<T>;

  /** Returns a request that takes effect once. */
  once(name: string, settings?: OnceSettings): Once;
  /** Returns an election. */
  election(name: string, settings?: ElectionSettings): Election;

  /** Returns the holders of a lock. */
  holders(name: string): Promise<Holder[]>;
  /** Returns the waiters for a lock, in the order in which the store serves them. */
  waiters(name: string): Promise<Waiter[]>;
  /** Returns the held locks whose names match `pattern`, such as `invoices/*`. Default: all, at most 1 000. */
  listLocks(pattern?: string, settings?: { limit?: number }): Promise<LockListing>;
  /** Takes a lock from the holder with this fence. The guard of the holder is lost. */
  breakLock(name: string, fence: number, settings?: BreakSettings): Promise<BreakOutcome>;
  /**
   * Prepares a new store, as `leasehold init` does: PostgreSQL needs its tables, and new members of a quorum have no vote
   * for a minute without it. Returns whether it changed anything.
   */
  init(): Promise<boolean>;
  /** Asks each member of the store. Empty for a store without members. */
  health(): Promise<Member[]>;

  /** Adopts a lock that another process detached with `intoHandle`. */
  adopt(handle: string, settings?: Abortable): Promise<Guard>;
  /** Renews the lease of a handle, and returns a handle with the new deadline. */
  renewHandle(handle: string): Promise<string>;
  /** Releases the lock of a handle. */
  releaseHandle(handle: string): Promise<ReleaseOutcome>;

  /**
   * Closes the client: its calls reject, its guards are lost, and its locks are released. Resolves with whether the store
   * confirmed all releases within `limit` ms (default: 5 000).
   */
  close(settings?: { limit?: number }): Promise<boolean>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** Returns a client of the store at `url`. It connects at its first call. Several URLs are a quorum of Redis servers. */
export function connect(url: string | readonly string[], settings?: ClientSettings): Client;

/**
 * Closes all clients of this thread when one of `signals` arrives (default: SIGINT and SIGTERM), and then lets the signal
 * end the process, unless the program has handlers of its own for it. Returns a function that undoes this.
 */
export function closeOnSignals(signals?: readonly NodeJS.Signals[], settings?: { limit?: number }): () => void;

/** What failed, for programs. */
export type ErrorCode =
  | "LEASEHOLD_BUSY"
  | "LEASEHOLD_CLOSED"
  | "LEASEHOLD_CORRUPT"
  | "LEASEHOLD_FENCED"
  | "LEASEHOLD_INCOMPATIBLE_KEY"
  | "LEASEHOLD_INVALID_INPUT"
  | "LEASEHOLD_INVALID_RESPONSE"
  | "LEASEHOLD_IO"
  | "LEASEHOLD_LOST"
  | "LEASEHOLD_MISCONFIGURED"
  | "LEASEHOLD_NOT_INITIALIZED"
  | "LEASEHOLD_NO_QUORUM"
  | "LEASEHOLD_PERMITS_DIFFER"
  | "LEASEHOLD_REFUSED"
  | "LEASEHOLD_UNREACHABLE"
  | "LEASEHOLD_UNSUPPORTED"
  | "LEASEHOLD_UNTRUSTED"
  | (string & {});

/** The error of all calls. A wrong type of an argument is a `TypeError`. */
export class LeaseholdError extends Error {
  protected constructor();
  readonly code: ErrorCode;
  /** The name of the lock. */
  readonly lock: string | undefined;
  /** The store, without credentials. */
  readonly store: string | undefined;
  /** Why the lock was lost. */
  readonly reason: LostReason | undefined;
  /** The identity of the client that holds the lock. */
  readonly holder: string | undefined;
  /** The members of a quorum that failed, with their errors. */
  readonly members: Readonly<Record<string, string>>;
  /** Whether the same call may succeed later. */
  readonly retryable: boolean;
  /** Whether the call may have taken effect although it failed. */
  readonly effectUnknown: boolean;
}
/** Another client held the lock until the wait ended. */
export class BusyError extends LeaseholdError {}
/** The lock was lost. */
export class LostError extends LeaseholdError {}
/** The store, or too many of its members, did not answer. */
export class UnavailableError extends LeaseholdError {}
/** The client was closed, or the guard was released before. */
export class ClosedError extends LeaseholdError {}
