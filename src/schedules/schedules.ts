import { SluiceError, isSluiceError } from "../core/error.js";
import { checkName } from "../core/name.js";
import { checkInteger } from "../core/number.js";
import { checkOneOf, checkOptions } from "../core/option.js";
import type { Missed } from "../core/schedule.js";
import type { TaskTerms } from "../core/terms.js";
import { unknownName } from "../postgres/known.js";
import {
  listSchedules,
  pauseSchedule,
  removeSchedule,
  triggerSchedule,
  type ScheduleStatus,
} from "../postgres/schedule.js";
import type { EnqueueServices } from "../tasks/enqueue.js";
import type { TaskHandle } from "../tasks/handle.js";
import { resume, seenSchedule, writeSchedule } from "./set.js";
import { termsOf } from "./terms.js";
import { checkTiming } from "./timing.js";

/** When a schedule ticks: a cron expression in a time zone (default UTC), or an interval. */
export type ScheduleTiming =
  | { readonly cron: string; readonly timeZone?: string; readonly everyMs?: undefined }
  | { readonly everyMs: number; readonly cron?: undefined; readonly timeZone?: undefined };

/** Options of a schedule. */
export type ScheduleOptions<Input> = ScheduleTiming & {
  readonly task: TaskTerms<Input>;
  /**
   * What happens to ticks that were due while no worker was running. skip: they are dropped. once (default): only the
   * latest one is enqueued. all: every one is enqueued, up to the newest 1,000.
   */
  readonly missed?: Missed;
  /** Overrides the task's priority. Higher runs first. */
  readonly priority?: number;
  /** Default true. */
  readonly enabled?: boolean;
} & (undefined extends Input ? { readonly input?: NoInfer<Input> } : { readonly input: NoInfer<Input> });

/** Which schedules to list. */
export interface ScheduleListOptions {
  /** Only names after this one. */
  readonly after?: string;
  /** The page size, at most 10,000. Default 1,000. */
  readonly max?: number;
}

/** Queries the database, or throws `closed`. */
type Ask = <T>(use: (services: EnqueueServices) => Promise<T>) => Promise<T>;

const OPTIONS = ["cron", "timeZone", "everyMs", "task", "input", "missed", "priority", "enabled"];
const LIST_RANGE = { min: 1, max: 10_000 };

/** Tasks that are enqueued periodically, by the leading keeper. */
export class Schedules {
  readonly #ask: Ask;
  readonly #handleOf: (id: string) => TaskHandle;

  /** @internal */
  constructor(ask: Ask, handleOf: (id: string) => TaskHandle) {
    this.#ask = ask;
    this.#handleOf = handleOf;
  }

  /**
   * Creates or changes a schedule, for all processes. Setting the same options again changes nothing, so every process
   * may call this at startup. The input is checked now, and its order key and limits are decided now, as in enqueue. A
   * changed timing applies from now on; ticks that were already due under the old timing are enqueued first. A schedule
   * paused by an operator stays paused.
   */
  async set<Input>(name: string, options: ScheduleOptions<Input>): Promise<ScheduleStatus> {
    checkName("schedule", name);
    checkOptions("schedules.set", options, OPTIONS);
    const { missed = "once", enabled = true, priority, task, input } = options;
    const said = {
      ...checkTiming(options),
      missed: checkOneOf("missed", missed, ["skip", "once", "all"]),
      enabled: checkFlag("enabled", enabled),
      priority,
    };
    const terms = checkTask(task) as TaskTerms<never>;
    return this.#ask(async (services) => {
      const write = async (): Promise<ScheduleStatus> =>
        writeSchedule(services.db, name, await termsOf(services, terms, input, said));
      try {
        return await write();
      } catch (e) {
        if (!isSluiceError(e, "unknown_limit")) throw e;
        // A limit declared by this process has been removed.
        services.declarations.forget();
        return write();
      }
    });
  }

  /** Returns the current status of the schedule; throws `unknown_schedule`. */
  async get(name: string): Promise<ScheduleStatus> {
    checkName("schedule", name);
    return this.#ask(async ({ db }) => (await seenSchedule(db, name)).status);
  }

  /** Returns a page of schedules, by name. */
  async list(options: ScheduleListOptions = {}): Promise<ScheduleStatus[]> {
    checkOptions("schedules.list", options, ["after", "max"]);
    const max = checkInteger("max", options.max ?? 1_000, LIST_RANGE);
    const after = options.after === undefined ? "" : checkName("schedule", options.after);
    return this.#ask(({ db }) => listSchedules(db, after, max));
  }

  /** Removes the schedule; tasks that it has enqueued stay. Returns false if there is no schedule with this name. */
  async remove(name: string): Promise<boolean> {
    checkName("schedule", name);
    return this.#ask(({ db }) => removeSchedule(db, name));
  }

  /**
   * Pauses the schedule. Once this returns, it enqueues nothing, even across deploys, until it is resumed. Throws
   * `unknown_schedule`.
   */
  async pause(name: string): Promise<void> {
    checkName("schedule", name);
    await this.#ask(async ({ db }) => {
      if (!(await pauseSchedule(db, name))) throw await unknownName(db, "schedule", name);
    });
  }

  /** Resumes the schedule with the first tick from now; ticks during the pause do not count as missed. */
  async resume(name: string): Promise<void> {
    checkName("schedule", name);
    return this.#ask(({ db }) => resume(db, name));
  }

  /**
   * Enqueues now what a tick would enqueue, even while the schedule is paused. Its regular ticks are not affected. Throws
   * `unknown_schedule`.
   */
  async trigger(name: string): Promise<TaskHandle> {
    checkName("schedule", name);
    const id = await this.#ask(async ({ db }) => {
      const enqueued = await triggerSchedule(db, name);
      if (enqueued === null) throw await unknownName(db, "schedule", name);
      return enqueued;
    });
    return this.#handleOf(id);
  }
}

function checkTask<T>(task: T): T {
  if (typeof (task as Partial<TaskTerms> | null | undefined)?.place === "function") return task;
  throw new SluiceError("unknown_task", "task must be made by task(name, options)");
}

function checkFlag(option: string, value: unknown): boolean {
  if (typeof value === "boolean") return value;
  throw new SluiceError("invalid_option", `${option} must be true or false`, {
    details: { option },
  });
}
