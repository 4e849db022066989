import { SluiceError } from "./error.js";
import { checkKey, checkName, type Key } from "./name.js";
import { checkInteger } from "./number.js";
import { checkOptions } from "./option.js";

/** Slots that a limit may have; 0 pauses, null stands for "no number for now". */
export type Slots = number | null;

interface LimitWords {
  readonly name: string;
  /** The declared number for all keys together; undefined if the limit has no total. */
  readonly total: Slots | undefined;
  /** The declared number for each key; undefined if the limit has no keys. */
  readonly perKey: Slots | undefined;
}

/** A limit without keys. It can stand in a task's `limits` as it is. */
export interface TotalLimit extends LimitWords {
  readonly total: Slots;
  readonly perKey: undefined;
}

/** A limit per key, with or without a total. In a task's `limits` it stands as `tenant.for(key)`. */
export interface KeyedLimit extends LimitWords {
  readonly perKey: Slots;
  /** This limit for one key. */
  for(key: Key): LimitUse<unknown>;
  /**
   * This limit for the key that the function reads from a task's parsed input. TypeScript cannot
   * look outward for the input's type: annotate it, `tenant.for((mail: Mail) => mail.tenantId)`, or
   * write `{ limit: tenant, key: (mail) => mail.tenantId }`, where it need not look outward.
   */
  for<Parsed>(key: (input: Parsed) => Key): LimitUse<Parsed>;
}

/** A named capacity. The numbers here are what the code declares; the database has those in force. */
export type Limit = TotalLimit | KeyedLimit;

/** One limit that a task has to pass, and under which key. */
export interface LimitUse<in Parsed = never> {
  readonly limit: Limit;
  readonly key: string | null | ((input: Parsed) => Key);
}

/** What a task's list of limits may hold. */
export type LimitEntry<Parsed> = TotalLimit | LimitUse<Parsed>;

const SLOTS_RANGE = { min: 0, max: 2_000_000_000 };

/** Declares a limit: `total` for everyone together, `perKey` for each key, or both. */
export function limit(name: string, shape: { readonly perKey: Slots; readonly total?: Slots }): KeyedLimit;
export function limit(name: string, shape: { readonly total: Slots; readonly perKey?: undefined }): TotalLimit;
export function limit(name: string, shape: { readonly total?: Slots; readonly perKey?: Slots | undefined }): Limit {
  checkOptions("limit", shape, ["total", "perKey"]);
  const total = checkSlots("total", shape.total);
  const perKey = checkSlots("perKey", shape.perKey);
  if (total === undefined && perKey === undefined) {
    throw new SluiceError("invalid_option", "a limit needs a total, a perKey, or both", {
      details: { option: "total" },
    });
  }
  return new DeclaredLimit(checkName("limit", name), total, perKey) as Limit;
}

/** Whether something was made by `limit`. */
export function isLimit(value: unknown): value is Limit {
  return value instanceof DeclaredLimit;
}

/** Normalises an entry of a task's `limits`; a keyed limit without a key is `key_missing`. */
export function toUse(entry: unknown): LimitUse {
  if (entry instanceof DeclaredUse) return entry;
  const written = writtenUse(entry);
  if (written !== null) return written;
  if (!(entry instanceof DeclaredLimit)) {
    throw new SluiceError("invalid_option", "limits may hold only limits and limit.for(key)", {
      details: { option: "limits" },
    });
  }
  if (entry.perKey !== undefined) throw keyMissing(entry.name);
  return new DeclaredUse(entry as Limit, null);
}

/** `{ limit, key }` written out by hand, or null. */
function writtenUse(entry: unknown): LimitUse | null {
  if (typeof entry !== "object" || entry === null || !("limit" in entry)) return null;
  const key = "key" in entry ? entry.key : null;
  if (!(entry.limit instanceof DeclaredLimit)) return null;
  return key === null ? toUse(entry.limit) : entry.limit.for(key);
}

/** Checks the key of a limit, with an error of its own for the likeliest mistake. */
export function checkLimitKey(name: string, key: unknown): string {
  if (key === undefined || key === null) throw keyMissing(name);
  return checkKey("limit", key);
}

// Classes, so that an entry is known for what it is and not by its looks.
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
      throw new SluiceError("limit_shape", `limit ${this.name} has no perKey, so it cannot be used for a key`, {
        details: { limit: this.name },
      });
    }
    const checked = typeof key === "function" ? key : checkLimitKey(this.name, key);
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

function keyMissing(name: string): SluiceError {
  return new SluiceError("key_missing", `limit ${name} is per key and needs one: use .for(key)`, {
    details: { limit: name },
  });
}
