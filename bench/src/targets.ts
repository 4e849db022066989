/** A row of "Speed it must reach". */
export interface Target {
  readonly workload: string;
  readonly subject: string;
  readonly of: "ratio" | "value";
  readonly atLeast?: number;
  readonly atMost?: number;
}

function ratioAtLeast(workload: string, subject: string, atLeast: number): Target {
  return { workload, subject, of: "ratio", atLeast };
}

export const targets: readonly Target[] = [
  ratioAtLeast("drain-1", "sluice, history on", 1.0),
  ratioAtLeast("drain-2", "sluice, history on", 1.0),
  ratioAtLeast("drain-1", "sluice, history off", 1.2),
  ratioAtLeast("drain-2", "sluice, history off", 1.2),
  ratioAtLeast("enqueue", "sluice enqueueMany", 1.2),
  ratioAtLeast("never-binds", "a named limit", 0.9),
  ratioAtLeast("never-binds", "the type's own concurrency", 0.9),
  ratioAtLeast("types", "1 of 100 limited", 0.95),
  ratioAtLeast("limit-10", "limit 10, tasks of 5 ms", 0.85),
  ratioAtLeast("order", "100 order keys", 0.35),
  ratioAtLeast("blocked", "a million blocked beside it", 0.95),
  ratioAtLeast("unserved", "half a million unserved beside it", 0.95),
  { workload: "latency", subject: "sluice", of: "ratio", atMost: 1.0 },
  { workload: "permits", subject: "5,000 tasks of 50 ms", of: "value", atMost: 450 },
  { workload: "in-flight", subject: "10,000 tasks in flight", of: "value", atMost: 400 },
];
