import { createHash } from "node:crypto";
import { SluiceError } from "../core/error.js";
import { encodeInput } from "../core/json.js";
import { renderInput, type Missed } from "../core/schedule.js";
import type { TaskTerms } from "../core/terms.js";
import type { ScheduleTerms } from "../postgres/schedule.js";
import type { EnqueueServices } from "../tasks/enqueue.js";
import { prepare, shared, type Prepared } from "../tasks/prepare.js";
import type { Timing } from "./timing.js";

/** The options of a schedule besides its task and input. */
interface Said extends Timing {
  readonly missed: Missed;
  readonly enabled: boolean;
  readonly priority: number | undefined;
}

// A shift that changes the year, month, day, hour, minute, second and millisecond.
const ANOTHER_TIME_MS = 400 * 24 * 3_600_000 + 3_661_001;

/**
 * Decides, once for all ticks, everything about an enqueue that requires code: the process that enqueues a tick later
 * does not need the task's code.
 */
export async function termsOf(
  services: EnqueueServices,
  task: TaskTerms<never>,
  input: unknown,
  said: Said,
): Promise<ScheduleTerms> {
  const { priority } = shared(task, said.priority === undefined ? {} : { priority: said.priority });
  const text = encodeInput(input, services.payloadBytesMax);
  const { order, limits } = await placed(services, task, text);
  const stream = await services.declarations.stream(task);
  await services.declarations.limits(stream, limits);
  const { cron, timeZone, everyMs, missed, enabled } = said;
  const terms = {
    input: text,
    cron,
    timeZone,
    everyMs,
    missed,
    priority,
    attempts: task.attempts,
    orderKey: order,
    orderBlocks: task.orderBlocks,
    limitNames: limits.map((l) => l.limit.name),
    limitKeys: limits.map((l) => l.key ?? ""),
    enabled,
  };
  return { ...terms, stream, digest: digestOf([task.type, task.queue, terms]) };
}

/**
 * Checks the input as rendered for two different ticks. Both must have the same order key and limits, because these are
 * decided only now.
 */
async function placed(services: EnqueueServices, task: TaskTerms<never>, text: string): Promise<Prepared> {
  const at = (ms: number): Prepared | Promise<Prepared> =>
    prepare(task, JSON.parse(renderInput(text, ms)), services.payloadBytesMax);
  const one = await at(Date.now());
  const other = await at(Date.now() + ANOTHER_TIME_MS);
  if (digestOf([one.order, one.limits]) === digestOf([other.order, other.limits])) return one;
  throw new SluiceError(
    "invalid_option",
    "the order key and the limits of a schedule are computed once, when it is set: they cannot depend on tickTime",
    { details: { option: "input" } },
  );
}

function digestOf(value: unknown): string {
  return createHash("sha256").update(JSON.stringify(value)).digest("hex");
}
