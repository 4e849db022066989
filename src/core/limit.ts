import { SluiceError } from "./error.js";
import { checkKey, checkName, type Key } from "./name.js";
import { checkInteger } from "./number.js";
import { checkOptions } from "./option.js";
import { quote } from "./quote.js";
import { clip } from "./text.js";

/** The number of slots of a limit; 0 pauses, null means "unlimited for now". */
export type Slots = number | null;

interface LimitWords {
  readonly name: string;
  /** The declared number of slots for all keys together; undefined if the limit has no total. */
  readonly total: Slots | undefined;
  /** The declared number of slots for each key; undefined if the limit has no keys. */
  readonly perKey: Slots | undefined;
}

/** What the compiler says about a keyed limit without a key. */
type KeyNeeded = "a limit with perKey needs a key: list it as { limit, key: (input) => ... } or limit.for(key)";

/** A limit without keys. A task's `limits` can list it directly. */
export interface TotalLimit extends LimitWords {
  /** Exists only as a type: it makes the compiler explain what is wrong with a keyed limit here. */
  readonly keyed?: KeyNeeded;
  readonly total: Slots;
  readonly perKey: undefined;
}

/** A limit per key, with or without a total. A task's `limits` lists it as `tenant.for(key)`. */
export interface KeyedLimit extends LimitWords {
  /** Exists only as a type: see `TotalLimit`. */
  readonly keyed?: true;
  readonly perKey: Slots;
  /** Applies this limit under one fixed key. */
  for(key: Key): LimitUse<unknown>;
  /**
   * Applies this limit under the key that the function reads from a task's parsed input. TypeScript cannot infer the
   * input type from the surrounding task: annotate it, `tenant.for((mail: Mail) => mail.tenantId)`, or write
   * `{ limit: tenant, key: (mail) => mail.tenantId }`, where TypeScript infers it.
   */
  for<Parsed>(key: (input: Parsed) => Key): LimitUse<Parsed>;
}

/** A named capacity. These numbers are the ones declared in code; the database holds the ones in force. */
export type Limit = TotalLimit | KeyedLimit;

/** One limit that a task has to pass, and its key. */
export interface LimitUse<in Parsed = never> {
  readonly limit: Limit;
  readonly key: string | null | ((input: Parsed) => Key);
}

/** An entry in a task's `limits`. */
export type LimitEntry<Parsed> = TotalLimit | LimitUse<Parsed>;

const SOURCE_BYTES_MAX = 200;
const SLOTS_RANGE = { min: 0, max: 2_000_000_000 };

/** Declares a limit: `total` for all keys together, `perKey` for each key, or both. */
export function limit(name: string, shape: { readonly perKey: Slots; readonly total?: Slots }): KeyedLimit;
export function limit(name: string, shape: { readonly total: Slots; readonly perKey?: undefined }): TotalLimit;
export function limit(name: string, shape: { readonly total?: Slots; readonly perKey?: Slots | undefined }): Limit {
  checkOptions("limit", shape, ["total", "perKey"]);
  const total = checkSlots("total", shape.total);
  const perKey = checkSlots("perKey", shape.perKey);
  if (total === undefined && perKey === undefined) {
    throw new SluiceError("invalid_option", "a limit needs total, perKey, or both", {
      details: { option: "total" },
    });
  }
  return new DeclaredLimit(checkName("limit", name), total, perKey) as Limit;
}

/** Returns whether a value was created by `limit`. */
export function isLimit(value: unknown): value is Limit {
  return value instanceof DeclaredLimit;
}

/** Normalizes an entry of a task's `limits`; a keyed limit without a key throws `key_missing`. */
export function toUse(entry: unknown, task?: string): LimitUse {
  if (entry instanceof DeclaredUse) return entry;
  const written = writtenUse(entry, task);
  if (written !== null) return written;
  if (!(entry instanceof DeclaredLimit)) {
    throw new SluiceError("invalid_option", "limits must contain only limits and limit.for(key)", {
      details: { option: "limits" },
    });
  }
  if (entry.perKey !== undefined) throw keyMissing(entry.name, task);
  return new DeclaredUse(entry as Limit, null);
}

/** Returns a handwritten `{ limit, key }`, or null for anything else. */
function writtenUse(entry: unknown, task?: string): LimitUse | null {
  if (typeof entry !== "object" || entry === null || !("limit" in entry)) return null;
  const key = "key" in entry ? entry.key : null;
  if (!(entry.limit instanceof DeclaredLimit)) return null;
  if (key === undefined && entry.limit.perKey !== undefined) throw keyMissing(entry.limit.name, task);
  return key === null ? toUse(entry.limit, task) : entry.limit.for(key);
}

/** Checks the key that a key function returned, with a separate error for the most likely mistake. */
export function checkReturnedKey({ limit: { name }, key: keyOf }: LimitUse, task: string, key: unknown): string {
  if (key !== undefined && key !== null) return checkKey("limit", key);
  const source = clip(Function.prototype.toString.call(keyOf).replaceAll(/\s+/g, " "), SOURCE_BYTES_MAX);
  throw new SluiceError(
    "key_missing",
    `limit ${name} needs a key: its key function in task ${quote(task)} returned ${key} for this input: ${source}`,
    { details: { limit: name, task, key: source } },
  );
}

// Classes, so that entries are identified by `instanceof` and not by their properties.
class DeclaredLimit implements LimitWords {
  constructor(
    readonly name: string,
    readonly total: Slots | undefined,
    readonly perKey: Slots | undefined,
  ) {
    Object.freeze(this);
  }

  for(key: unknown): LimitUse {
    if (this.perKey === undefined) {
      throw new SluiceError("limit_shape", `limit ${this.name} has no perKey: use it without .for(key)`, {
        details: { limit: this.name },
      });
    }
    const checked = typeof key === "function" ? key : checkGivenKey(this.name, key);
    return new DeclaredUse(this as Limit, checked as LimitUse["key"]);
  }
}

class DeclaredUse implements LimitUse {
  constructor(
    readonly limit: Limit,
    readonly key: LimitUse["key"],
  ) {
    Object.freeze(this);
  }
}

function checkSlots(option: string, value: Slots | undefined): Slots | undefined {
  return value === undefined || value === null ? value : checkInteger(option, value, SLOTS_RANGE);
}

function checkGivenKey(name: string, key: unknown): string {
  if (key === undefined || key === null) throw keyMissing(name, undefined, `limit.for(${key})`);
  return checkKey("limit", key);
}

/** task: unknown if the limit was not used for one yet. given: what the code passed as the key. */
function keyMissing(name: string, task?: string, given?: string): SluiceError {
  const where = task === undefined ? "" : ` in task ${quote(task)}`;
  const not = given === undefined ? "" : `, not ${given}`;
  return new SluiceError(
    "key_missing",
    `limit ${name} needs a key${where}: list it as { limit, key: (input) => ... } or limit.for(key)${not}`,
    { details: { limit: name, ...(task === undefined ? {} : { task }) } },
  );
}
