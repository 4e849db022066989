import type { Ratios } from "./result.js";

/** A number that must be reached. */
export interface Target {
  readonly workload: string;
  readonly subject: string;
  /** A ratio, the value itself, or the name of a fact. */
  readonly of: keyof Ratios | "value" | "inversions" | "overlaps" | "handOverMs";
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
  atLeast("enqueue", DEFAULT, "bestPeer", 1.3),
  atLeast("enqueue-4", DEFAULT, "bestPeer", 1.3),
  atMost("latency", DEFAULT, "bestPostgresPeer", 1.0),
  atMost("latency-p99", DEFAULT, "bestPostgresPeer", 1.0),
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
  atLeast("limit-10", ON, "base", 0.85),
  // To release a slot and to acquire it again: under 1 ms each.
  atMost("limit-10", ON, "handOverMs", 2),
  atLeast("never-binds", "a named limit", "base", 0.95),
  atLeast("never-binds", "the type's own concurrency", "base", 0.95),
  atLeast("types", "1 of 100 limited", "base", 0.95),
  atLeast("mixed", "1 of 100 limited", "base", 0.95),
  atLeast("blocked", "a million blocked beside it", "base", 0.95),
  atLeast("scheduled", "a million scheduled beside it", "base", 0.95),
  atLeast("finished", "three million finished beside it", "base", 0.95),
  atLeast("unserved", "half a million unserved beside it", "base", 0.95),
  atLeast("snapshot", "a snapshot is held", "base", 0.7),
];
