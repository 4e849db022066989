// Which flows a producer starts, and what it claims about them: the audit believes this, not the engine.
import type { FlowNode } from "../audit/line.js";
import type { Random } from "../random.js";
import { LINKS, linkAt, windowOf, WINDOWS, type FlowInput, type FlowName } from "./flows.js";
import { parts, type Part, type PartName } from "./parts.js";
import { keysOf, slotsOf, type Work } from "./terms.js";

export interface FlowPlan {
  readonly name: FlowName;
  readonly tag: string;
  readonly nodes: readonly FlowNode[];
  /** All its parts, each of which is offered. */
  readonly works: readonly Work[];
  readonly input: FlowInput;
}

const ITEMS = [20, 60] as const;
const HANDLER_MS_MAX = 50;
// Long beside what a claim takes, so that the slots of a window are seen in use together.
const ITEM_MS = [20, 80] as const;
const KEYS = 5;
const ORDER_KEYS = 12;
const twice = ["throw", "throw"] as const;

/** Writes down the nodes of a flow, one after the other. */
class Draft {
  readonly nodes: FlowNode[] = [];
  readonly works: Record<string, Work> = {};
  items: readonly Work[] = [];
  readonly #tag: string;
  readonly #random: Random;

  constructor(tag: string, random: Random) {
    this.#tag = tag;
    this.#random = random;
  }

  task(name: string, type: PartName, about: Partial<FlowNode> = {}, fails = 0): void {
    const tag = `${this.#tag}.${name}`;
    this.works[name] = this.#work(tag, type, this.#random.next() < fails);
    this.#node(name, { policy: "task", tags: [tag], ...about });
  }

  /** `fails`: how many of them fail for good, at most. */
  each(name: string, type: PartName, o: { slots: number; size: number; fails: number } & Partial<FlowNode>): void {
    const { slots, size, fails, ...about } = o;
    const window = windowOf(slots, this.#tag, name);
    const failing = new Set(
      Array.from({ length: this.#random.between(0, fails) }, () => this.#random.between(0, size)),
    );
    this.items = Array.from({ length: size }, (_, i) => {
      const work = this.#work(`${this.#tag}.${name}.${i}`, type, failing.has(i));
      const ms = this.#random.between(...ITEM_MS);
      return { ...work, ms, limits: [...work.limits, window] };
    });
    this.#node(name, { tags: this.items.map(({ tag }) => tag), ...about });
  }

  size(): number {
    return this.#random.between(...ITEMS);
  }

  #node(name: string, about: Partial<FlowNode>): void {
    const tags: readonly string[] = [];
    this.nodes.push({
      name,
      after: [],
      on: "success",
      policy: "task",
      tags,
      chained: false,
      ...about,
    });
  }

  #work(tag: string, type: PartName, fails: boolean): Work {
    const random = this.#random;
    const { attempts, ordered } = parts[type];
    const key = keysOf(parts[type]) > 0 ? `k${random.between(1, KEYS)}` : null;
    const orderKey = ordered ? `flow-${random.between(1, ORDER_KEYS)}` : null;
    const limits = slotsOf(parts[type], key);
    const deeds = fails ? twice : random.next() < 0.05 ? (["throw"] as const) : [];
    const ms = random.between(1, HANDLER_MS_MAX);
    const about = { tag, type, orderKey, place: null, limits, runAt: null, attempts };
    return { ...about, key, otherKey: null, ms, deeds };
  }
}

type Writing = (draft: Draft) => void;

const fan =
  (policy: "failFast" | "finish" | "collect", type: PartName): Writing =>
  (draft) => {
    draft.task("first", "step");
    const about = { policy, after: ["first"], slots: WINDOWS[policy] };
    draft.each("items", type, { ...about, size: draft.size(), fails: 2 });
    draft.task("last", "step", { after: ["items", "first"] });
    draft.task("final", "step", { after: ["items"], on: "end" });
  };

const chain =
  (links: number): Writing =>
  (draft) =>
    LINKS.slice(0, links).forEach((name, n) => {
      const after = LINKS.slice(Math.max(0, n - 1), n);
      draft.task(name, linkAt(n), { after, chained: true }, linkAt(n) === "link" ? 0.03 : 0);
    });

const SHAPES: Readonly<Record<FlowName, Writing>> = {
  "fan-failFast": fan("failFast", "item"),
  "fan-finish": fan("finish", "item"),
  "fan-collect": fan("collect", "fitted"),
  "root-finish": (draft) => {
    const about = { policy: "finish", slots: WINDOWS.finish } as const;
    draft.each("items", "fitted", { ...about, size: draft.size(), fails: 1 });
    draft.task("last", "step", { after: ["items"] });
  },
  "chain-5": chain(5),
  "chain-10": chain(10),
  diamond: (draft) => {
    draft.task("top", "sealed");
    draft.task("left", "joint", { after: ["top"] }, 0.1);
    const about = { policy: "finish", after: ["top"], slots: WINDOWS.diamond } as const;
    draft.each("right", "fitted", { ...about, size: 9, fails: 0 });
    draft.task("bottom", "step", { after: ["left", "right"] });
  },
  map: (draft) => {
    const about = { policy: "collect", slots: WINDOWS.map } as const;
    draft.each("map", "child", { ...about, size: 15, fails: 2 });
  },
};

export function planFlow(name: FlowName, tag: string, random: Random): FlowPlan {
  const draft = new Draft(tag, random);
  SHAPES[name](draft);
  const { nodes, works, items } = draft;
  const all = [...Object.values(works), ...items];
  return { name, tag, nodes, works: all, input: { tag, works, items } };
}

/** The task whose handler makes the flow of a map. */
export function parentOf({ tag, input }: FlowPlan): Part {
  const { attempts } = parts.parent;
  const about = { orderKey: null, place: null, runAt: null, ms: 1, deeds: [] };
  const keys = { key: null, otherKey: null };
  const work = {
    tag,
    type: "parent",
    limits: slotsOf(parts.parent, null),
    attempts,
    ...about,
    ...keys,
  };
  return { work, children: input.items.map((item) => ({ work: item })) };
}
