import type { Nodes } from "./play.js";
import { ref } from "./play.js";

/** Numbers that look random and are the same for the same seed. */
export class Dice {
  #state: number;

  constructor(seed: number) {
    this.#state = seed * 2_654_435_761 + 1;
  }

  /** From 0 to n - 1. */
  below(n: number): number {
    this.#state = (Math.imul(this.#state ^ (this.#state >>> 15), 0x2c1b3c6d) + 0x9e3779b9) | 0;
    const mixed = Math.imul(this.#state ^ (this.#state >>> 13), 0x297a2d39);
    return ((mixed ^ (mixed >>> 16)) >>> 0) % n;
  }

  of<T>(...choices: readonly T[]): T {
    return choices[this.below(choices.length)]!;
  }

  /** True with this probability in percent. */
  chance(percent: number): boolean {
    return this.below(100) < percent;
  }
}

const POLICIES = ["failFast", "finish", "collect"] as const;
const NODES_MAX = 7;
const ITEMS_MAX = 7;

/** A graph of every kind of node and edge. `coded` is a type whose tasks only code can place. */
export function randomGraph(dice: Dice): Nodes {
  const nodes: Nodes = {};
  const count = 1 + dice.below(NODES_MAX);
  for (let i = 0; i < count; i++) {
    const before = Object.keys(nodes);
    const after = before
      .filter(() => dice.chance(Math.min(80, 150 / Math.max(1, before.length))))
      .slice(0, 3)
      .map((node) => ({
        node,
        on:
          nodes[node]![0] === "when"
            ? dice.of("then" as const, "else" as const)
            : dice.of("success" as const, "success" as const, "success" as const, "failure" as const, "end" as const),
        recovers: dice.chance(30),
      }));
    nodes[`n${i}`] = randomNode(dice, after, before);
  }
  return nodes;
}

function randomNode(dice: Dice, after: NonNullable<Nodes[string][1]["after"]>, before: string[]): Nodes[string] {
  const type = dice.of("free", "free", "bounded", "coded");
  const kind = dice.of("task", "task", "task", "each", "each", "when", "sleep", "waitFor", "bad");
  const seen = before.length === 0 ? ref("input") : ref(dice.of(...before));
  if (kind === "task") return ["task", { type, after, input: { seen } }];
  if (kind === "when") return ["when", { after, ref: ref("input", dice.of("yes", "no")), is: "truthy" }];
  if (kind === "sleep") return ["sleep", { after, ms: dice.of(0, 1) }];
  if (kind === "waitFor") return ["waitFor", { after, event: "go" }];
  // Now and then a list that is none.
  const items =
    kind === "bad" ? ref("input", dice.of("no", "list")) : Array.from({ length: dice.below(ITEMS_MAX) }, (_, i) => i);
  const window = dice.of(undefined, 1, 2, 3);
  return [
    "each",
    {
      type,
      after,
      items,
      input: { i: ref("item"), seen },
      onError: dice.of(...POLICIES),
      ...(window === undefined ? {} : { window }),
    },
  ];
}

export const RANDOM_INPUT = { yes: true, no: false, list: [1, 2] };
