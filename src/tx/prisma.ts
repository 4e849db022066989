import type { Queryable } from "../core/ports.js";
import { pgError, refuseTx } from "./fault.js";

/** The transaction that `prisma.$transaction` passes to its callback. */
export interface PrismaTransaction {
  $queryRawUnsafe(text: string, ...params: never[]): PromiseLike<unknown>;
  /** Only the client itself has this method, so passing the client does not compile. */
  readonly $connect?: never;
}

/** Adapts an interactive Prisma transaction for use as `tx`. */
export function fromPrisma(tx: PrismaTransaction): Queryable {
  if (typeof tx?.$queryRawUnsafe !== "function" || tx.$connect !== undefined) {
    refuseTx("fromPrisma needs the transaction from prisma.$transaction(), not prisma itself");
  }
  return {
    async query(text, params = []) {
      try {
        return { rows: (await tx.$queryRawUnsafe(text, ...(params as never[]))) as unknown[] };
      } catch (e) {
        throw unwrapped(e);
      }
    },
  };
}

interface PrismaError {
  readonly code?: unknown;
  readonly message?: string;
  readonly meta?: { readonly driverAdapterError?: { readonly cause?: Driver } };
}

/** The part of PostgreSQL's error that the driver adapter keeps. */
interface Driver {
  readonly originalCode?: unknown;
  readonly originalMessage?: string;
  readonly hint?: string;
}

const ENDED = "P2028";

/** Extracts PostgreSQL's error from Prisma's. A lost connection has no code there either. */
function unwrapped(e: unknown): unknown {
  const { code, message, meta } = (e ?? {}) as PrismaError;
  if (code === ENDED) refuseTx(`the Prisma transaction has ended: ${lastLine(message)}`, e);
  const driver = meta?.driverAdapterError?.cause;
  if (driver === undefined) return e;
  const text = driver.originalMessage ?? lastLine(message);
  // The store puts its code in two fields; this is the one that Prisma passes on.
  return pgError(text, { code: driver.originalCode, constraint: driver.hint, cause: e });
}

function lastLine(message: string | undefined): string {
  return message?.trimEnd().split("\n").at(-1) ?? "";
}
