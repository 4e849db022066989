import type { EnqueueOptions } from "../core/enqueue.js";
import { SluiceError } from "../core/error.js";
import { encodeInput } from "../core/json.js";
import { limit, type TotalLimit } from "../core/limit.js";
import { checkKey } from "../core/name.js";
import { checkInteger, checkMs } from "../core/number.js";
import { checkOptions } from "../core/option.js";
import type { PlacedLimit } from "../core/place.js";
import { DELAY_MS_MAX } from "../core/retry.js";
import { acceptsAnything } from "../core/schema.js";
import type { TaskTerms } from "../core/terms.js";

/** One task that is ready to be inserted: checked, encoded and placed. */
export interface Prepared {
  readonly input: string;
  readonly order: string | null;
  readonly limits: readonly PlacedLimit[];
}

/** Returns whether two tasks pass the same limits, even with different keys: one statement can insert both. */
export function sameLimits(a: Prepared, b: Prepared): boolean {
  if (a.limits === b.limits) return true;
  return a.limits.length === b.limits.length && a.limits.every((l, i) => l.limit.name === b.limits[i]!.limit.name);
}

/** Values shared by every task of one call. */
export interface Shared {
  readonly priority: number;
  readonly runAt: Date | null;
  readonly delayMs: number | null;
  /** The name and total of an additional limit. */
  readonly group: TotalLimit | null;
}

/** Options of one enqueued task. */
export const ENQUEUE_OPTIONS = ["runAt", "delayMs", "priority", "idempotencyKey", "group", "groupLimit", "tx"];
const YEAR_MS = 365 * 24 * 3_600_000;

/** Checks one input and decides its place in line. Every input that passes can be claimed. */
export function prepare(
  terms: TaskTerms<never>,
  input: unknown,
  payloadBytesMax: number,
): Prepared | Promise<Prepared> {
  const text = encodeInput(input, payloadBytesMax);
  // A schema or a key function must see what the worker will see; if none inspects the input, decoding is unnecessary.
  // guard: the schema judges what is stored -> test/tasks/input.test.ts: "a Date for z.date() is refused at enqueue, because the worker would receive text"
  const stored: unknown = /* guard:stored-form */ isUnseen(terms, input) ? input : JSON.parse(text); /* end */
  const parsed: unknown = terms.parse(stored);
  const place = (value: unknown): Prepared => {
    const { order, limits } = terms.place(value);
    return { input: text, order, limits };
  };
  return parsed instanceof Promise ? parsed.then(place) : place(parsed);
}

/** Returns whether no schema, order or limit looks at the input. JSON has no undefined, so that stays as it is. */
function isUnseen({ input: schema, ordered, limitList }: TaskTerms<never>, input: unknown): boolean {
  if (!acceptsAnything(schema)) return false;
  if (input === undefined) return true;
  return !ordered && limitList !== null && !limitList.some(({ key }) => typeof key === "function");
}

/** Checks the options that every task of a call shares. */
export function shared(terms: TaskTerms<never>, options: EnqueueOptions): Shared {
  checkOptions("enqueue", options, ENQUEUE_OPTIONS);
  const priority = checkInteger("priority", options.priority ?? terms.priority, {
    min: -32_000,
    max: 32_000,
  });
  return { priority, ...timeOf(options), group: groupOf(options) };
}

/** '' for no key. */
export function idempotencyKeyOf(key: unknown): string {
  return key === undefined ? "" : checkKey("idempotency", key);
}

function timeOf({ runAt, delayMs }: EnqueueOptions): Pick<Shared, "runAt" | "delayMs"> {
  if (runAt !== undefined && delayMs !== undefined) {
    throw new SluiceError("invalid_option", "pass runAt or delayMs, not both");
  }
  if (delayMs !== undefined) {
    const range = { min: 0, max: DELAY_MS_MAX * 12 };
    return { runAt: null, delayMs: checkMs("delayMs", delayMs, range) };
  }
  if (runAt === undefined) return { runAt: null, delayMs: null };
  const ms = runAt instanceof Date ? runAt.getTime() : Number.NaN;
  if (!(Math.abs(ms - Date.now()) < 100 * YEAR_MS)) {
    throw new SluiceError("invalid_option", "runAt must be a Date within 100 years from now");
  }
  return { runAt, delayMs: null };
}

function groupOf({ group, groupLimit }: EnqueueOptions): TotalLimit | null {
  if (group === undefined) {
    if (groupLimit === undefined) return null;
    throw new SluiceError("invalid_option", "groupLimit needs a group");
  }
  return limit(group, { total: groupLimit ?? null });
}
