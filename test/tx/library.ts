import type { Queryable, Sluice } from "../../src/index.js";

/** A transaction of a library, as the contract uses it. */
export interface Opened {
  /** The transaction of the library, wrapped by its adapter. */
  readonly tx: Queryable;
  /** A write of the user through the library, in the same transaction. */
  readonly insert: (name: string) => Promise<void>;
}

/** One library on one database, with its own pool. */
export interface Library {
  /** Runs fn in a transaction: commits if it resolves, rolls back if it rejects. */
  transaction<T>(fn: (opened: Opened) => Promise<T>): Promise<T>;
  /** The code of the documentation. */
  signUp(sluice: Sluice, name: string): Promise<void>;
  close(): Promise<void>;
}
