// The workflows of the load: every policy of a fan-out, sequences, a diamond with keys.
import { type, workflow, type Workflow } from "../../src/index.js";
import { parts, type PartContract } from "./parts.js";
import type { Work } from "./terms.js";

/** The input of every flow. What nodes are given are references into it. */
export interface FlowInput {
  readonly tag: string;
  readonly works: Readonly<Record<string, Work>>;
  readonly items: readonly Work[];
}

type Named<N extends string> = Omit<FlowInput, "works"> & {
  readonly works: Readonly<Record<N, Work>>;
};
const inputOf = <N extends string>() => ({ input: type<Named<N>>() });

type Policy = "failFast" | "finish" | "collect";

/** Each number is one of the limits that must be seen full, so each stands for two windows. */
export const WINDOWS = { failFast: 3, finish: 4, collect: 5, diamond: 3, map: 5 } as const;

/** A fan-out between two tasks; what comes after its end comes after its failure too. */
const fanOf = (policy: Policy, item: PartContract) =>
  workflow(`fan-${policy}`, inputOf<"first" | "last" | "final">(), (w, { works, items }) => {
    const first = w.task("first", parts.step, { work: works.first });
    const options = { window: WINDOWS[policy], onError: policy, after: [first] };
    const each = w.each("items", item, items, (work) => ({ work }), options);
    w.task("last", parts.step, { work: works.last, heard: { items: each.results, first } });
    w.task("final", parts.step, { work: works.final }, { after: [{ node: each, on: "end" }] });
  });

/** A fan-out that has nothing before it: whoever starts the flow places its items, or else a worker. */
const rootOf = (policy: Policy, item: PartContract) =>
  workflow(`root-${policy}`, inputOf<"last">(), (w, { works, items }) => {
    const options = { window: WINDOWS[policy], onError: policy };
    const each = w.each("items", item, items, (work) => ({ work }), options);
    w.task("last", parts.step, { work: works.last, heard: { items: each.results } });
  });

export const LINKS = ["l1", "l2", "l3", "l4", "l5", "l6", "l7", "l8", "l9", "l10"] as const;

/** A sequence in which every third completes in a transaction. */
const chainOf = (links: number) =>
  workflow(`chain-${links}`, inputOf<(typeof LINKS)[number]>(), (w, { works }) => {
    w.sequence("chain", (s) => {
      for (const [n, name] of LINKS.slice(0, links).entries()) s.task(name, parts[linkAt(n)], { work: works[name] });
    });
  });

export function linkAt(n: number): "sealed" | "link" {
  return n % 3 === 2 ? "sealed" : "link";
}

const diamond = workflow("diamond", inputOf<"top" | "left" | "bottom">(), (w, { works, items }) => {
  const top = w.task("top", parts.sealed, { work: works.top });
  const left = w.task("left", parts.joint, { work: works.left, heard: { top } });
  const options = { window: WINDOWS.diamond, onError: "finish", after: [top] } as const;
  const right = w.each("right", parts.fitted, items, (work) => ({ work }), options);
  w.task("bottom", parts.step, { work: works.bottom, heard: { left, right: right.results } });
});

type FlowWorkflow = Workflow<FlowInput>;

export const workflows = {
  "fan-failFast": fanOf("failFast", parts.item),
  "fan-finish": fanOf("finish", parts.item),
  "fan-collect": fanOf("collect", parts.fitted),
  "root-finish": rootOf("finish", parts.fitted),
  "chain-5": chainOf(5),
  "chain-10": chainOf(10),
  diamond,
} as const;

/** map: a task whose handler fans out. */
export type FlowName = keyof typeof workflows | "map";

/** One of two producers begins in the middle: so all windows are there soon. */
export const flowNames: readonly FlowName[] = [
  "fan-failFast",
  "fan-collect",
  "fan-finish",
  "chain-5",
  "diamond",
  "map",
  "root-finish",
  "chain-10",
];

export function workflowOf(name: Exclude<FlowName, "map">): FlowWorkflow {
  return workflows[name];
}

/** As the audit names a window. */
export function windowOf(slots: number, flow: string, node: string): string {
  return `window${slots}/${flow}-${node}`;
}

const WINDOW_OF: Readonly<Partial<Record<FlowName, keyof typeof WINDOWS>>> = {
  "fan-failFast": "failFast",
  "fan-finish": "finish",
  "fan-collect": "collect",
  "root-finish": "finish",
  diamond: "diamond",
  map: "map",
};

/** The windows of these flows, as limits are told: so many at once in each of them. */
export function windowNumbers(flows: readonly FlowName[] = flowNames): Record<string, number> {
  const used = flows.flatMap((name) => WINDOW_OF[name] ?? []);
  return Object.fromEntries(used.map((name) => [`window${WINDOWS[name]}/*`, WINDOWS[name]]));
}
