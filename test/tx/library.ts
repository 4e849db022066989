import type { Queryable, Sluice } from "../../src/index.js";

/** A transaction of some library, as the contract sees it. */
export interface Opened {
  /** What the adapter makes of the library's transaction. */
  readonly tx: Queryable;
  /** The user's own write, by the library's own means, in the same transaction. */
  readonly insert: (name: string) => Promise<void>;
}

/** One library on one database, with its own pool. */
export interface Library {
  /** Runs fn in a transaction: commits what it resolves, rolls back what it rejects. */
  transaction<T>(fn: (opened: Opened) => Promise<T>): Promise<T>;
  /** The code of the documentation. */
  signUp(sluice: Sluice, name: string): Promise<void>;
  close(): Promise<void>;
}
