import type { Ratios } from "./result.js";

/** A number that must be reached. */
export interface Target {
  readonly workload: string;
  readonly subject: string;
  /** A ratio, the value itself, or the name of a fact. */
  readonly of:
    keyof Ratios | "value" | "inversions" | "overlaps" | "handOverMs" | "shareMinPercent" | "shareMaxPercent";
  readonly atLeast?: number;
  readonly atMost?: number;
}

const ON = "sluice, history on";
const OFF = "sluice, history off";
const DEFAULT = "sluice, default";

function atLeast(workload: string, subject: string, of: Target["of"], number: number): Target {
  return { workload, subject, of, atLeast: number };
}

function atMost(workload: string, subject: string, of: Target["of"], number: number): Target {
  return { workload, subject, of, atMost: number };
}

/** Ratios within one run, except where time or memory is named. */
export const targets: readonly Target[] = [
  atLeast("drain-1", OFF, "bestPeer", 1.4),
  atLeast("drain-1", OFF, "pureSql", 0.75),
  atLeast("drain-1", ON, "bestPeer", 1.2),
  atLeast("drain-2", OFF, "bestPeer", 1.1),
  atLeast("drain-2", ON, "bestPeer", 1.0),
  // With nothing set, against the best of the tuned peers.
  atLeast("drain-1", DEFAULT, "bestPeer", 1.2),
  atLeast("drain-2", DEFAULT, "bestPeer", 1.0),
  // Nothing set adapts to a backlog by itself.
  atLeast("presets", "preset throughput", "base", 0.95),
  atLeast("enqueue", DEFAULT, "bestPeer", 1.3),
  atLeast("enqueue-4", DEFAULT, "bestPeer", 1.3),
  atLeast("enqueue-50", DEFAULT, "bestPostgresPeer", 2),
  atMost("latency", DEFAULT, "bestPostgresPeer", 1.0),
  atMost("latency-p99", DEFAULT, "bestPostgresPeer", 1.0),
  atLeast("shares", DEFAULT, "shareMinPercent", 30),
  atMost("shares", DEFAULT, "shareMaxPercent", 37),
  atMost("permits", ON, "base", 1.5),
  atMost("in-flight", ON, "value", 400),
  atLeast("metrics", "metrics on", "base", 0.97),
  atLeast("metrics", "metrics on, read each second", "base", 0.97),
  ...["order", "order-contiguous"].flatMap((workload) => [
    atLeast(workload, ON, "bestPeer", 1.5),
    atMost(workload, ON, "inversions", 0),
    atMost(workload, ON, "overlaps", 0),
  ]),
  atLeast("order", ON, "base", 0.35),
  ...["order-20k", "order-1"].flatMap((workload) => [
    atMost(workload, ON, "inversions", 0),
    atMost(workload, ON, "overlaps", 0),
  ]),
  atLeast("limit-10-noop", ON, "bestPostgresPeer", 2),
  atLeast("limit-10-noop", ON, "bullmqRedis", 1.0),
  atLeast("limit-500", ON, "bestPeer", 2),
  atLeast("limit-10-noop", DEFAULT, "bullmqRedis", 1.0),
  atLeast("limit-10", ON, "base", 0.85),
  atLeast("limit-10", DEFAULT, "base", 0.85),
  atLeast("limit-10-awaited", "all results awaited", "base", 0.85),
  atLeast("total-12", "one total", "base", 0.9),
  atLeast("total-12", "two totals", "base", 0.85),
  // To release a slot and to acquire it again: under 1 ms each.
  atMost("limit-10", ON, "handOverMs", 2),
  ...["never-binds", "never-binds-default"].flatMap((workload) =>
    ["a named limit", "the type's own concurrency"].flatMap((subject) => [
      atLeast(workload, subject, "base", 0.95),
      atMost(workload, subject, "baseCpu", 1.05),
    ]),
  ),
  atLeast("types", "1 of 100 limited", "base", 0.95),
  // The four of the checklist.
  atLeast("baseline", ON, "bestPeer", 1.0),
  atLeast("enabled", ON, "bestPostgresPeer", 2),
  atLeast("mixed", "1 of 100 limited", "base", 0.95),
  atLeast("high", ON, "bestPeer", 2),
  atLeast("high", ON, "base", 0.85),
  atLeast("blocked", "a million blocked beside it", "base", 0.95),
  atLeast("scheduled", "a million scheduled beside it", "base", 0.95),
  atLeast("finished", "three million finished beside it", "base", 0.95),
  atLeast("unserved", "half a million unserved beside it", "base", 0.95),
  atLeast("snapshot", "a snapshot is held", "base", 0.7),
];
