/** Fields beside a log line. */
type LogFields = Record<string, unknown>;

/** Where log lines go. Any structured logger can be fitted to it. */
export interface Logger {
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
}

/** Anything that runs SQL: a pg client, a pool, or a transaction of an ORM. */
export interface Queryable {
  // oxlint-disable-next-line typescript/no-explicit-any -- rows are what the statement says; unknown would refuse pg's own types
  query(text: string, params?: unknown[]): Promise<{ rows: any[] }>;
}

/** Monotonic time, so that no clock jump can lengthen a lease. */
export interface Clock {
  /** Milliseconds since some fixed point. */
  now(): number;
}

/** The clock of this process. */
export const monotonicClock: Clock = { now: () => performance.now() };

function nothing(): void {}

/** Logs nothing. */
export const silentLogger: Logger = {
  debug: nothing,
  info: nothing,
  warn: nothing,
  error: nothing,
};

/** Where lines go if nobody says otherwise: warnings and errors to standard error, as JSON. */
export const standardErrorLogger: Logger = {
  debug: nothing,
  info: nothing,
  warn: (message, fields) => console.warn(JSON.stringify({ sluice: message, ...fields })),
  error: (message, fields) => console.error(JSON.stringify({ sluice: message, ...fields })),
};

const PERIOD_MS = 1000;
// Messages are meant to be constant; should somebody put ids into them, memory stays bounded.
const TROUBLES_MAX = 1000;

type Level = keyof Logger;

interface Trouble {
  loggedAtMs: number;
  suppressed: number;
}

/**
 * Lets one line a second through per level, message and type of task, and tells in the next line's `suppressed`
 * how many it held back. A logger that throws is not allowed to hurt who logs.
 */
export function oncePerSecond(logger: Logger, clock: Clock = monotonicClock): Logger {
  const troubles = new Map<string, Trouble>();
  const at = (level: Level) => (message: string, fields?: LogFields) => {
    const about = typeof fields?.["type"] === "string" ? ` ${fields["type"]}` : "";
    const held = pass(troubles, `${level} ${message}${about}`, clock.now());
    if (held === null) return;
    const told = held === 0 ? fields : { ...fields, suppressed: held };
    try {
      logger[level](message, told);
    } catch {
      // There is nowhere left to report this to.
    }
  };
  return { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
}

/** How many lines were held back since the last one, or null if this one is to be held back too. */
function pass(troubles: Map<string, Trouble>, key: string, nowMs: number): number | null {
  const known = troubles.get(key);
  if (known !== undefined && nowMs - known.loggedAtMs < PERIOD_MS) {
    known.suppressed++;
    return null;
  }
  // Deleted first, so that the map stays sorted by age and the oldest is the one forgotten.
  troubles.delete(key);
  forgetOldest(troubles);
  troubles.set(key, { loggedAtMs: nowMs, suppressed: 0 });
  return known?.suppressed ?? 0;
}

function forgetOldest(troubles: Map<string, Trouble>): void {
  if (troubles.size < TROUBLES_MAX) return;
  const oldest = troubles.keys().next();
  if (oldest.done !== true) troubles.delete(oldest.value);
}
