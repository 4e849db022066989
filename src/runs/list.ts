import { SluiceError } from "../core/error.js";
import { checkName } from "../core/name.js";
import { checkInteger } from "../core/number.js";
import { checkOneOf, checkOptions } from "../core/option.js";
import { quote } from "../core/quote.js";
import type { Database } from "../postgres/database.js";
import { listMaps, listRuns, type RunState } from "../postgres/workflow/inspect.js";
import { summaryOf, type RunSummary } from "./status.js";

/** Which runs to list, newest first. */
export interface RunSearch {
  /** The name of the workflow. */
  readonly workflow?: string;
  readonly state?: RunState;
  /** Lists the fan-outs by `ctx.map` of this task's handler instead of workflow runs. */
  readonly task?: string;
  /** Only runs started at this time or later. */
  readonly since?: Date;
  /** The page size, at most 1,000. Default 100. */
  readonly limit?: number;
  /** The `cursor` of the previous page: continues after it. */
  readonly cursor?: string;
}

/** A page of runs. */
export interface RunPage {
  readonly runs: readonly RunSummary[];
  /** Pass as `cursor` for the next page; null if this was the last one. */
  readonly cursor: string | null;
}

export const STATES = ["running", "paused", "cancelling", "succeeded", "failed", "cancelled"] as const;

export async function searchRuns(db: Database, search: RunSearch): Promise<RunPage> {
  checkOptions("runs", search, ["workflow", "state", "task", "since", "limit", "cursor"]);
  const { workflow, state, since, cursor } = search;
  const max = checkInteger("limit", search.limit ?? 100, { min: 1, max: 1_000 });
  const asked = {
    name: workflow === undefined ? undefined : checkName("workflow", workflow),
    state: state === undefined ? undefined : checkOneOf("state", state, STATES),
    since: since === undefined ? undefined : checkDate(since),
    before: cursor === undefined ? undefined : checkCursor(cursor),
    max,
  };
  const task = checkTask(search);
  const runs = await (task === undefined ? listRuns(db, asked) : listMaps(db, task, asked));
  return {
    runs: runs.map(summaryOf),
    cursor: runs.length < max ? null : runs.at(-1)!.id,
  };
}

function checkTask({ task, workflow, since }: RunSearch): string | undefined {
  if (task === undefined) return undefined;
  if (workflow !== undefined || since !== undefined)
    throw refusal("task", "task cannot be combined with workflow or since");
  if (typeof task === "string" && /^\d{1,18}$/.test(task)) return task;
  throw refusal("task", `task must be the id of a task, a string of digits, not ${quote(task)}`);
}

function checkDate(since: unknown): Date {
  if (since instanceof Date && !Number.isNaN(since.getTime())) return since;
  throw refusal("since", `since must be a Date, not ${quote(since)}`);
}

function checkCursor(cursor: unknown): string {
  if (typeof cursor === "string" && /^\d{1,18}$/.test(cursor)) return cursor;
  throw refusal("cursor", "cursor must be the cursor of the previous page");
}

function refusal(option: string, message: string): SluiceError {
  return new SluiceError("invalid_option", message, { details: { option } });
}
