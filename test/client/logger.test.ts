// pino and winston are not installed here: the fakes have the properties and the argument rules of the real loggers.
import { Console } from "node:console";
import { PassThrough } from "node:stream";
import { expect, test } from "vitest";
import { task, type ConnectOptions, type Logger } from "../../src/index.js";
import { checkLogger, loggerOf } from "../../src/client/logger.js";
import { scene } from "../flow/scene.js";

type Fields = Record<string, unknown>;

const LEVELS = { debug: 20, info: 30, warn: 40, error: 50 } as const;
type Level = keyof typeof LEVELS;

// The overloads of pino's LogFn.
interface PinoLogFn {
  <T>(obj: T, msg?: T extends string ? never : string, ...args: unknown[]): void;
  (msg: string, ...args: number[]): void;
}
type Pino = Record<Level, PinoLogFn> & { level: Level; child(bindings: Fields): Pino; bindings(): Fields };

function noop(): void {}

/**
 * As pino makes it: the serializers are under a registered symbol, a child inherits from its parent, levels below the
 * current one are no-ops, and a first argument that is a string is the message; what follows it formats the message.
 */
function fakePino(lines: Fields[], level: Level = "info"): Pino {
  const write = (self: Fields, at: Level, args: unknown[]): void => {
    const [o, ...n] = args;
    const fields = typeof o === "object" ? o : null;
    const msg = typeof o === "object" ? n[0] : o;
    lines.push({ level: LEVELS[at], ...(self["chindings"] as Fields), ...fields, msg });
  };
  const pino: Fields = {
    [Symbol.for("pino.serializers")]: {},
    chindings: {},
    bindings: () => ({}),
    child(bindings: Fields) {
      return Object.assign(Object.create(this as object), { chindings: bindings });
    },
    set level(now: Level) {
      for (const at of Object.keys(LEVELS) as Level[])
        this[at] =
          LEVELS[at] < LEVELS[now]
            ? noop
            : function LOG(this: Fields, ...args: unknown[]) {
                write(this, at, args);
              };
    },
  };
  pino["level"] = level;
  return pino as unknown as Pino;
}

// The overloads of winston's LeveledLogMethod.
interface WinstonLogFn {
  (message: string, callback: () => void): Winston;
  (message: string, meta: unknown, callback: () => void): Winston;
  (message: string, ...meta: unknown[]): Winston;
  (infoObject: object): Winston;
}
type Winston = Record<Level, WinstonLogFn>;

/** As winston makes it: one argument is the message or the whole line, more are a level, a message and its metadata. */
function fakeWinston(lines: Fields[], levels: readonly string[] = Object.keys(LEVELS)): Winston {
  class DerivedLogger {
    log(level: string, message: unknown, ...splat: unknown[]): void {
      const [meta] = splat;
      lines.push({ ...(typeof meta === "object" ? meta : {}), level, message, splat: splat.length });
    }
  }
  for (const level of levels)
    Object.defineProperty(DerivedLogger.prototype, level, {
      value(this: DerivedLogger, ...args: unknown[]) {
        if (args.length === 1) lines.push({ level, message: args[0], splat: 0 });
        else this.log(level, args[0], ...args.slice(1));
        return this;
      },
    });
  return new DerivedLogger() as unknown as Winston;
}

test("pino gets the fields before the message, also as a child and after its level has changed", () => {
  const lines: Fields[] = [];
  const root = fakePino(lines);
  const logger = loggerOf(root.child({ app: "shop" }));
  logger.info("claimed", { tasks: 3 });
  logger.error("no fields");
  logger.debug("hidden", { n: 1 });
  root.level = "debug";
  logger.debug("shown", { n: 2 });
  expect(lines).toEqual([
    { level: 30, app: "shop", tasks: 3, msg: "claimed" },
    { level: 50, app: "shop", msg: "no fields" },
    { level: 20, app: "shop", n: 2, msg: "shown" },
  ]);
});

test("a logger with the functions of pino and without its symbol gets the fields first", () => {
  const calls: unknown[][] = [];
  const log = (...args: unknown[]): void => void calls.push(args);
  const wrapper = { debug: log, info: log, warn: log, error: log, bindings: () => ({}), setBindings: noop };
  loggerOf(wrapper).warn("slow", { ms: 5 });
  expect(calls).toEqual([[{ ms: 5 }, "slow"]]);
});

test("winston gets the message before the fields, and no empty argument", () => {
  const lines: Fields[] = [];
  const logger = loggerOf(fakeWinston(lines));
  logger.info("claimed", { tasks: 3 });
  logger.warn("no fields");
  expect(lines).toEqual([
    { level: "info", tasks: 3, message: "claimed", splat: 1 },
    { level: "warn", message: "no fields", splat: 0 },
  ]);
});

test("winston with syslog levels gets warnings at its level warning", () => {
  const lines: Fields[] = [];
  const syslog = fakeWinston(lines, ["emerg", "error", "warning", "info", "debug"]);
  checkLogger(syslog);
  loggerOf(syslog).warn("slow", { ms: 5 });
  expect(lines).toEqual([{ level: "warning", ms: 5, message: "slow", splat: 1 }]);
});

test("console prints the message and the fields, and nothing for missing fields", () => {
  const out = new PassThrough();
  const logger = loggerOf(new Console({ stdout: out, stderr: out }));
  logger.info("claimed", { tasks: 3 });
  logger.error("no fields");
  expect(String(out.read())).toBe("claimed { tasks: 3 }\nno fields\n");
});

test("a Logger of one's own gets the message first", () => {
  const calls: unknown[][] = [];
  const log = (...args: unknown[]): void => void calls.push(args);
  const logger: Logger = { debug: log, info: log, warn: log, error: log };
  loggerOf(logger).error("broken", { task: "7" });
  expect(calls).toEqual([["broken", { task: "7" }]]);
});

test("a logger without the four functions is refused with the missing names", () => {
  expect(() => checkLogger({ info: noop, error: noop })).toThrow(
    "logger must have the functions debug, info, warn and error; missing: debug, warn",
  );
});

test("connect takes a pino logger as it is, for the engine and for ctx.log", async () => {
  const lines: Fields[] = [];
  const s = await scene({ logger: fakePino(lines) });
  const job = task("job", { retry: { attempts: 1 } });
  await s.worker({
    handlers: [
      job.handle((_, ctx) => {
        ctx.log.info("working", { step: 1 });
        throw new Error("no card");
      }),
    ],
  });
  const { id, result } = await s.sluice.enqueue(job).then((handle) => ({ id: handle.id, result: handle.result() }));
  await expect(result).rejects.toMatchObject({ code: "task_failed" });
  expect(lines).toContainEqual({ level: 30, task: id, type: "job", attempt: 1, step: 1, msg: "working" });
  // Logged once the outcome is stored, which is when the result is known too.
  const failed: unknown = expect.objectContaining({
    level: 50,
    task: id,
    error: "no card",
    msg: "a task failed for good",
  });
  await expect.poll(() => lines, { timeout: 20_000 }).toContainEqual(failed);
});

test("loggers of pino, winston and console have types that connect accepts, and a literal has typed arguments", () => {
  type Option = NonNullable<ConnectOptions["logger"]>;
  const literal: Option = { debug: noop, info: noop, warn: noop, error: (message, fields) => typed(message, fields) };
  const typed = (message: string, fields: Fields = {}): void => void [message, fields];
  const accepted: Option[] = [console, fakeWinston([]), fakePino([]), literal];
  expect(accepted).toHaveLength(4);
});
