/** Structured fields of a log line. */
type LogFields = Record<string, unknown>;

/** Receives log lines. `console` and the loggers of pino and winston can be passed in its place. */
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

/** The default logger: writes warnings and errors to standard error, as JSON. */
export const standardErrorLogger: Logger = {
  debug: nothing,
  info: nothing,
  warn: (message, fields) => console.warn(JSON.stringify({ sluice: message, ...fields })),
  error: (message, fields) => console.error(JSON.stringify({ sluice: message, ...fields })),
};

const PERIOD_MS = 1000;
// Messages are meant to be constant; if one contains ids, memory stays bounded.
const TROUBLES_MAX = 1000;

type Level = keyof Logger;

interface Trouble {
  readonly key: string;
  loggedAtMs: number;
  /** The number of suppressed lines, and a function that logs the last of them. */
  suppressed: number;
  last: (suppressed: number) => void;
  timer: NodeJS.Timeout | null;
}

/** A logger that suppresses repeated lines. */
export interface ThrottledLogger extends Logger {
  /** Logs the suppressed lines; call it before closing. */
  flush(): void;
}

/**
 * Lets one line per second through for each level, message and task type. When the second is over, the last suppressed
 * line is logged, with the number of the others in `suppressed`. Errors thrown by the logger do not reach the caller.
 */
export function oncePerSecond(logger: Logger, clock: Clock = monotonicClock): ThrottledLogger {
  const throttle = new Throttle(clock);
  const at = (level: Level) => (message: string, fields?: LogFields) => {
    const about = typeof fields?.["type"] === "string" ? ` ${fields["type"]}` : "";
    throttle.pass(`${level} ${message}${about}`, (suppressed) => {
      try {
        logger[level](message, suppressed === 0 ? fields : { ...fields, suppressed });
      } catch {
        // There is no other place to report this error.
      }
    });
  };
  const levels = { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
  return { ...levels, flush: () => throttle.flush() };
}

class Throttle {
  readonly #clock: Clock;
  readonly #troubles = new Map<string, Trouble>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  pass(key: string, log: Trouble["last"]): void {
    const known = this.#troubles.get(key);
    const restMs = known === undefined ? 0 : PERIOD_MS - (this.#clock.now() - known.loggedAtMs);
    if (known === undefined || restMs <= 0) return this.#log(key, log, known);
    known.suppressed++;
    known.last = log;
    // A timer may fire slightly early by this clock.
    known.timer ??= setTimeout(() => this.#tell(known), Math.ceil(restMs) + 1).unref();
  }

  flush(): void {
    // A logged entry is inserted again at the end, with nothing left to log.
    for (const trouble of this.#troubles.values()) this.#tell(trouble);
  }

  #log(key: string, log: Trouble["last"], known?: Trouble): void {
    if (known !== undefined) this.#forget(known);
    const oldest = this.#troubles.size < TROUBLES_MAX ? null : this.#troubles.values().next().value;
    if (oldest) this.#forget(oldest);
    // A new entry, so that the map stays sorted by age and the oldest entry is evicted.
    const loggedAtMs = this.#clock.now();
    this.#troubles.set(key, { key, loggedAtMs, suppressed: 0, last: log, timer: null });
    log(known?.suppressed ?? 0);
  }

  #tell(trouble: Trouble): void {
    if (this.#troubles.get(trouble.key) !== trouble || trouble.suppressed === 0) return;
    trouble.suppressed--;
    this.#log(trouble.key, trouble.last, trouble);
  }

  #forget(trouble: Trouble): void {
    if (trouble.timer !== null) clearTimeout(trouble.timer);
    this.#troubles.delete(trouble.key);
  }
}
