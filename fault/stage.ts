// What a fault may lay its hands on.
import type pg from "pg";
import type { Sluice } from "../src/index.js";
import type { Line } from "./audit/line.js";
import type { Jumped } from "./moved-clock.js";
import type { Random } from "./random.js";
import type { Deadlocks } from "./server/errors.js";

/** The log of the audit, on a server that no fault touches. */
export interface Log {
  /** Appends lines with the log server's time; `process` is who says so. Resolves when they are stored. */
  write(lines: readonly Unstamped[]): Promise<void>;
}

type Without<T> = T extends unknown ? Omit<T, "at" | "process"> : never;
/** A line before its time is known. `process`: about whom, if not the writer. */
export type Unstamped = Without<Line> & { readonly process?: string };

/** A worker process. Each stands behind a proxy of its own. */
export interface Member {
  readonly name: string;
  readonly pid: number;
  readonly proxy: Proxy;
  /** How many tasks it has in hand, as it last said (it says so whenever that changes). */
  inHand(): number;
  /** kill -9. Writes `dead` once it is gone. */
  kill(): Promise<void>;
  /**
   * SIGTERM; resolves when it has ended by itself, with how many tasks it had in hand when it heard of it.
   * Writes `terminating` before and `dead` after.
   */
  terminate(): Promise<number>;
  freeze(): void;
  thaw(): void;
  /** Blocks its event loop for so long. Resolves when the loop turns again. */
  block(ms: number): Promise<void>;
  /** Warnings and errors it has logged so far. */
  logLines(): number;
}

/** One statement as the proxy sees it go by: the prepared statement's name, or its text. */
export interface Exchange {
  readonly statement: string;
  readonly asked: string;
  readonly rows: number;
}
type Fits = (exchange: Exchange) => boolean;

export interface Proxy {
  readonly url: string;
  /** The next reply that fits is lost after the server has committed, and its connection with it. Resolves when that happened. */
  loseReply(fits: Fits, signal: AbortSignal): Promise<boolean>;
  /** Resolves when the next request that fits has been passed on to the server; its reply is held until `letGo`. */
  holdReply(fits: Fits, signal: AbortSignal): Promise<(() => void) | undefined>;
  /** Nothing goes through in either direction, and nobody is told; new connections hang too. */
  blackHole(): void;
  /** What the server sends is lost; what the worker sends arrives. */
  halfOpen(): void;
  /** Every packet is held back for so long. */
  slow(ms: number): void;
  /** On how many connections something was said since then that did not arrive. */
  swallowed(): number;
  /** New connections go through again; those that were disturbed by blackHole or halfOpen are cut. */
  restore(): void;
}

export interface Fleet {
  /** Those that are up and not disturbed by another fault. */
  members(): readonly Member[];
  /** A worker at random that no other fault has, waiting for one if need be. It is replaced if it has died when `with` ends. */
  borrow<T>(random: Random, withMember: (member: Member) => Promise<T>): Promise<T>;
  /** One more worker until `with` ends, started with these extra environment variables (libfaketime). */
  guest<T>(env: Readonly<Record<string, string>>, withMember: (member: Member) => Promise<T>): Promise<T>;
}

export interface QueueServer {
  /** A direct connection string of the superuser, past all proxies. */
  readonly url: string;
  /** Data directory. */
  readonly dataDir: string;
  /** SIGQUIT to the postmaster, then a new start on the same port. Resolves when it accepts connections again. */
  restartImmediately(): Promise<void>;
  /** Makes sure it runs, whatever became of it. */
  ensureUp(): Promise<void>;
  /** Fills what is left of the data directory's disk; empties it again. */
  fillDisk(): Promise<void>;
  freeDisk(): Promise<void>;
  /**
   * How often the server has answered anybody with this SQLSTATE so far, by its own log: it is started
   * with log_line_prefix = '%e %a|' and the lines `ERROR` and `FATAL` are counted. Those whose
   * application name is `fault` (the administrator of the faults) do not count. The faults' evidence.
   */
  errors(sqlstate: string): Promise<number>;
  /** Deadlocks so far, by the same log: those that the fault of that name provoked, and all others. */
  deadlocks(): Promise<Deadlocks>;
}

export interface Clock {
  /** Sets it forward, or back, by so much. Resolves with what it met. */
  jump(byMs: number): Promise<Jumped>;
}

export interface Stage {
  readonly leaseMs: number;
  readonly server: QueueServer;
  /** An administrator's pool on the queue's server, past all proxies. Breaks with the server, and connects anew. */
  readonly sql: pg.Pool;
  /** The database's clock. */
  readonly clock: Clock;
  /** An operator's Sluice, past all proxies. */
  readonly sluice: Sluice;
  readonly fleet: Fleet;
  /** The proxy before all producers. */
  readonly producers: Proxy;
  readonly log: Log;
  /** Aborted when the run is over: a fault must end soon, and leave things as they were. */
  readonly signal: AbortSignal;
  /** `disturbed` for the member, or for all (`*`), before; `restored` after, whatever happens. */
  disturbing<T>(whom: string, what: string, during: () => Promise<T>): Promise<T>;
  /** Waits, but no longer than the run. */
  pause(ms: number): Promise<void>;
}

/** A fault that the run may be asked to do again and again. */
export interface Fault {
  /** As `--only` says it. */
  readonly name: string;
  /** One line for `--help`. */
  readonly about: string;
  /**
   * What it disturbs. `server`: everybody, so no other such fault at the same time. `worker`: one process,
   * borrowed from the fleet. `work`: only numbers, tasks and transactions.
   */
  readonly disturbs: "server" | "worker" | "work";
  /** A transaction that it leaves open, or a lock, may keep tasks waiting that nothing else holds. */
  readonly holdsLocks?: true;
  /** What this machine lacks for it, and how to get that; null if nothing. */
  readonly lacks?: () => string | null;
  /** Does it once, from beginning to end. Resolves with how often it really bit: 0 if there was nothing to bite. */
  bite(stage: Stage, random: Random): Promise<number>;
}
