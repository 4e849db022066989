// The tasks that flows are made of. A flow is a run of a workflow.
import { fixed, task, type, type TaskContract } from "../../src/index.js";
import type { Heard } from "../audit/line.js";
import { account, tenant, typesOf, type Work } from "./terms.js";

/** The input of every part: what its producer claims about it, and what the nodes before it came to. */
export interface Part {
  readonly work: Work;
  readonly heard?: Heard;
  /** What its handler fans out to. */
  readonly children?: readonly Part[];
}

export type PartContract = TaskContract<Part, Part, string>;

const input = type<Part>();
const output = type<string>();
const key = ({ work }: Part): string => work.key ?? "";
const order = { key: ({ work }: Part) => work.orderKey, onFailure: "continue" } as const;
const side = { queue: "side" };
// One that is told to fail twice fails for good.
const common = { input, output, retry: { attempts: 2, backoff: fixed(30) } };
// These throw whenever the database is away.
const patient = { ...common, retry: { attempts: 100, backoff: fixed(50) } };

export const parts = {
  step: task("step", common),
  item: task("item", { ...common, ...side }),
  /** Only code can place these two: they have keys. */
  fitted: task("fitted", { ...common, limits: [{ limit: tenant, key }] }),
  joint: task("joint", { ...common, order, limits: [{ limit: account, key }] }),
  link: task("link", { ...common, ...side }),
  /** Completes in a transaction, which only leaves a note for the flow. */
  sealed: task("sealed", patient),
  parent: task("parent", patient),
  child: task("child", { ...common, ...side }),
} satisfies Record<string, PartContract>;

export type PartName = keyof typeof parts;
export const partNames = Object.keys(parts) as PartName[];

/** All types of a queue, those of the other load included. */
export function allTypesOf(queue: string): string[] {
  return [...typesOf(queue), ...partNames.filter((name) => parts[name].queue === queue)];
}
