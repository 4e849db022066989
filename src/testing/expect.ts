import { AssertionError } from "node:assert";
import { checkInteger } from "../core/number.js";
import { checkOptions } from "../core/option.js";
import type { EnqueuedOptions, EnqueuedTask } from "./enqueued.js";
import { asStored, differences, partOf, show, type Like } from "./like.js";

/** Terms that an enqueued task must match, besides its input. */
export interface ExpectOptions
  extends
    EnqueuedOptions,
    Partial<Pick<EnqueuedTask, "state" | "priority" | "attempt" | "order" | "limits" | "runAt" | "idempotencyKey">> {
  /** The exact number of matching tasks. Default: one or more. */
  readonly times?: number;
}

const OPTIONS = ["state", "priority", "attempt", "order", "limits", "runAt", "idempotencyKey", "times", "tx"];
const TIMES_RANGE = { min: 0, max: 10_000 };
const NEAREST_LINES = 10;

/** Returns the matching tasks. Throws an AssertionError if their number is wrong. */
export function expectLike<Input>(
  type: string,
  tasks: readonly EnqueuedTask<Input>[],
  input: Like<Input> | undefined,
  options: ExpectOptions,
): readonly EnqueuedTask<Input>[] {
  checkOptions("expectEnqueued", options, OPTIONS);
  const { times, tx: _, ...terms } = options;
  const exactly = times === undefined ? null : checkInteger("times", times, TIMES_RANGE);
  const wanted = asStored({ ...(input === undefined ? {} : { input }), ...terms });
  const alike = tasks.filter((task) => differences(wanted, asStored(task), "task").length === 0);
  if (exactly === null ? alike.length > 0 : alike.length === exactly) return alike;
  throw failure(type, { tasks, alike, exactly, wanted });
}

interface Findings {
  readonly tasks: readonly EnqueuedTask[];
  readonly alike: readonly EnqueuedTask[];
  readonly exactly: number | null;
  readonly wanted: unknown;
}

function failure(type: string, findings: Findings): AssertionError {
  const { tasks, alike, exactly, wanted } = findings;
  const times = exactly === null ? "" : ` ${exactly} times`;
  const lines = [
    `expected ${type} to be enqueued${times} with ${show(wanted)}`,
    `found ${tasks.length} of this type, ${alike.length} of them match`,
  ];
  const near = alike.length === 0 ? nearest(wanted, tasks) : null;
  if (near !== null) {
    lines.push(`the closest, task ${near.task.id}, differs:`);
    lines.push(...near.lines.slice(0, NEAREST_LINES).map((line) => `  ${line}`));
  } else if (alike.length > 0) {
    lines.push(...alike.slice(0, NEAREST_LINES).map((task) => `  task ${task.id}: ${show(task.input)}`));
  }
  return new AssertionError({
    message: lines.join("\n"),
    actual: near === null ? alike.length : partOf(wanted, asStored(near.task)),
    expected: near === null ? (exactly ?? 1) : wanted,
    operator: "expectEnqueued",
    stackStartFn: expectLike,
  });
}

function nearest(wanted: unknown, tasks: readonly EnqueuedTask[]) {
  const ranked = tasks
    .map((task) => ({ task, lines: differences(wanted, asStored(task), "task") }))
    .toSorted((a, b) => a.lines.length - b.lines.length);
  return ranked[0] ?? null;
}
