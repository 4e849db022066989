import type { About, Result } from "../result.js";
import { pretty } from "../say.js";
import { byWorkload, factName, factText, isMeasured, isPureSql, isSluice, ranked, type Measured } from "./words.js";

/** A bar, or the lack of one. */
export interface Bar {
  readonly label: string;
  readonly kind: "sluice" | "peer" | "limit";
  /** Null: it cannot. */
  readonly extent: { readonly value: number; readonly min: number; readonly max: number } | null;
  readonly text: string;
}

/** The bars of one workload. */
export interface Panel {
  readonly title: string;
  readonly hint: string;
  readonly about: string;
  readonly bars: readonly Bar[];
}

/** The workloads that a chart is about. */
const CHARTED = [
  "drain-1",
  "drain-2",
  "enqueue",
  "enqueue-4",
  "order",
  "order-contiguous",
  "limit-10-noop",
  "limit-500",
  "keys-2",
  "order-limit",
  "latency",
  "latency-p99",
] as const;

/** The main workloads in which a peer took part: Sluice in each variant, of every peer its best. */
export function panelsOf(results: readonly Result[]): Panel[] {
  const groups = byWorkload(results);
  return CHARTED.map((name) => groups.get(name) ?? [])
    .filter((group) => group.some((r) => isMeasured(r) && kindOf(r) === "peer"))
    .map(panelOf);
}

function panelOf(group: readonly Result[]): Panel {
  const [first] = group as [Result];
  const shown = shownOf(ranked(group));
  const able = new Set(shown.map((r) => r.subject.library));
  const lacking = new Map(
    group.filter((r) => !isMeasured(r) && !able.has(r.subject.library)).map((r) => [r.subject.library, r]),
  );
  return {
    title: first.workload,
    hint: first.better === "less" ? `${first.unit}, less is better` : first.unit,
    about: first.about,
    bars: [...shown.map(barOf), ...[...lacking.values()].map(lackOf)],
  };
}

/** Sluice without what is asked for, which it is compared to, is no subject of a chart. */
function shownOf(best: readonly Measured[]): Measured[] {
  return best.filter((r, at) => {
    if (isSluice(r)) return r.subject.name !== r.base;
    const before = best.slice(0, at).filter((b) => b.subject.library === r.subject.library);
    // Below a variant that breaks the order stands the best one that does not.
    return before.length === 0 || (before.every((b) => breaksOrder(b)) && !breaksOrder(r));
  });
}

function breaksOrder({ facts }: Measured): boolean {
  return (facts["inversions"] ?? 0) > 0 || (facts["overlaps"] ?? 0) > 0;
}

function kindOf(result: Result): Bar["kind"] {
  if (isSluice(result)) return "sluice";
  return isPureSql(result) ? "limit" : "peer";
}

function barOf(result: Measured): Bar {
  const { value, min, max } = result;
  const notes = notesOf(result);
  const text = notes === "" ? pretty(value) : `${pretty(value)}  (${notes})`;
  return { label: result.subject.name, kind: kindOf(result), extent: { value, min, max }, text };
}

/** Speed that was bought with order is not the same speed. */
function notesOf({ facts }: Measured): string {
  const [broken] = ["inversions", "overlaps"].filter((name) => (facts[name] ?? 0) > 0);
  return broken === undefined ? "" : `${factText(facts[broken]!)} ${factName(broken)}`;
}

function lackOf(result: Result): Bar {
  return { label: result.subject.library, kind: kindOf(result), extent: null, text: "cannot" };
}

/** What a reader needs to judge the bars, in a line. */
export function captionOf(about: About): string {
  return [
    `${about.cores} cores (${about.cpu})`,
    `PostgreSQL ${versionOf(about.postgres)}`,
    ...(about.redis === null ? [] : [`Redis ${versionOf(about.redis)}`]),
    `Node ${about.node.replace(/^v/, "")}`,
    about.at.slice(0, 10),
  ].join(" · ");
}

/** "15.18 (Debian 15.18-0)" -> "15.18", "Redis 7.0.15: ..." -> "7.0.15" */
function versionOf(text: string): string {
  return /\d[\w.]*/.exec(text)?.[0] ?? text;
}
