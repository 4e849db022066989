import type { Case } from "./case.js";
import type { Offer, Start } from "./history.js";
import { named } from "./lost.js";
import type { Claims, FlowNode } from "./line.js";

/** Only what was offered before, and not withdrawn, may run; as it was offered, and once per offer. */
export function neverEnqueued({ history, findings }: Case): void {
  for (const { line, task } of history.runs) {
    const wrong = wrongWith(line, history.offers.get(line.tag)!);
    if (wrong !== null) findings.add("neverEnqueued", () => `${named(task)} started, but ${wrong}`);
  }
  const parts = new Set([...history.flows.values()].flatMap(({ nodes }) => tagsOf(nodes)));
  for (const [tag, { lines, withdrawn, tasks }] of history.offers) {
    // Of a part of a flow there may be another task when the flow was retried: see advance.
    if (parts.has(tag)) continue;
    if (lines.length > 0 && tasks.size > Math.max(1, lines.length - withdrawn))
      findings.add("neverEnqueued", () => `${tag} was offered once, but became ${[...tasks].join(", ")}`);
  }
}

function wrongWith(start: Start, { lines, withdrawn }: Offer): string | null {
  const offers = lines.filter(({ at }) => at <= start.at);
  if (lines.length === 0) return "was never offered";
  if (offers.length === 0) return "was offered only later";
  if (withdrawn >= lines.length) return "was withdrawn";
  const differences = offers.map((offer) => differenceOf(offer, start));
  return differences.includes(null) ? null : differences.at(-1)!;
}

function differenceOf(offer: Claims, start: Claims): string | null {
  const names = ["type", "orderKey", "place", "limits", "runAt", "attempts"] as const;
  const differs = names.find((name) => told(offer[name]) !== told(start[name]));
  if (differs === undefined) return null;
  return `its ${differs} was offered as ${told(offer[differs])} and is ${told(start[differs])}`;
}

function told(value: Claims[keyof Claims]): string {
  if (typeof value !== "object" || value === null) return String(value);
  return [...new Set(value)].toSorted((a, b) => (a < b ? -1 : 1)).join(" ");
}

function tagsOf(nodes: readonly FlowNode[]): string[] {
  return nodes.flatMap(({ tags }) => tags);
}
