import { SluiceError } from "../core/error.js";
import type { Logger } from "../core/ports.js";

const LEVELS = ["debug", "info", "warn", "error"] as const;

type Level = (typeof LEVELS)[number];
type LogMethod = (...args: unknown[]) => unknown;
type Methods = Record<string, LogMethod>;

// A registered symbol that every pino logger and its children have, whatever version of pino made them.
const PINO_SERIALIZERS = Symbol.for("pino.serializers");

/** A logger of pino. Its functions take the fields before the message; pino's own types, which vary, describe them. */
export interface PinoLogger {
  readonly debug: object;
  readonly info: object;
  readonly warn: object;
  readonly error: object;
  bindings(): object;
}

/** Otherwise an invalid logger would fail at the first important log line. */
export function checkLogger(logger: unknown): void {
  if (logger === undefined) return;
  const given = (logger ?? {}) as Partial<Methods>;
  const missing = LEVELS.filter((level) => typeof given[methodOf(given, level)] !== "function");
  if (missing.length === 0) return;
  throw new SluiceError(
    "invalid_option",
    `logger must have the functions debug, info, warn and error; missing: ${missing.join(", ")}`,
    { details: { option: "logger" } },
  );
}

/**
 * Adapts loggers of other packages. pino takes the fields before the message; console and winston take the message
 * first, as a Logger does, but print a missing argument. Methods are read at every call, because pino replaces them
 * when its level changes.
 */
export function loggerOf(given: Logger | PinoLogger): Logger {
  const methods = given as unknown as Methods;
  const fieldsFirst = takesFieldsFirst(given);
  const at = (level: Level): Logger[Level] => {
    const method = methodOf(methods, level);
    return (message, fields) => {
      if (fields === undefined) methods[method]!(message);
      else if (fieldsFirst) methods[method]!(fields, message);
      else methods[method]!(message, fields);
    };
  };
  return { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
}

/** The syslog levels of winston have `warning` in place of `warn`. */
function methodOf(methods: Partial<Methods>, level: Level): string {
  return level === "warn" && typeof methods["warn"] !== "function" ? "warning" : level;
}

/** Whether this is a pino logger, or one with pino's functions. No other logger has `setBindings`. */
function takesFieldsFirst(logger: object): boolean {
  const { bindings, setBindings } = logger as Partial<Methods>;
  return PINO_SERIALIZERS in logger || (typeof bindings === "function" && typeof setBindings === "function");
}
