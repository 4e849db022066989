// Takes a guard out of the engine, to see that the audit notices. For tests only.
import type pg from "pg";
import { mutate, type Mutation } from "../test/postgres/mutation.js";

const fence: readonly Mutation[] = [
  { in: "settle_few", edits: [["fence", ""]] },
  { in: "settle_plain", edits: [["fence", ""]] },
  { in: "settle_results", edits: [["fence", ""]] },
  { in: "settle_others", edits: [["fence", ""]] },
  // A zombie that completes in a transaction is also held up by its lease, and by having to settle something.
  {
    in: "settle_in_transaction",
    edits: [
      ["lease", ""],
      ["settled", "false"],
    ],
  },
];

export const sabotages: Readonly<Record<string, readonly Mutation[]>> = {
  fence,
  "lane-lock": [{ in: "lock_lanes", edits: [["lane-lock", ""]] }],
  "order-head": [
    {
      in: "admit_order",
      edits: [["place", "place desc, id desc"]],
    },
  ],
  "gate-cap": [
    {
      in: "lock_gates",
      edits: [["cap", "u.want"]],
    },
    { in: "plan_sole_source", edits: [["total", "p_n"]] },
  ],
  // More items of a fan-out run at once than its window lets through.
  window: [{ in: "lane_cap", edits: [["cap", "2 * n.window_size"]] }],
  // Tasks that wait for a total are passed over, 10 of every 12 seconds: all of them run in the end.
  "pass-over": [
    {
      in: "sources_at_gates",
      edits: [["every-gate", "and (h.gate = 0 or extract(epoch from clock_timestamp())::int % 12 < 2)\n    limit"]],
    },
  ],
  // After the clock was set back a dead worker's lease lasts until the clock has caught up.
  "set-back": [
    {
      in: "reap_workers",
      edits: [["clock", "false and expires_at"]],
    },
  ],
  // Two who complete the last items of a fan-out at once do not know of each other.
  "run-lock": [{ in: "workflow_ended", edits: [["run-lock", ""]] }],
  // The database gives tasks away long before their worker believes that its lease is over.
  lease: [
    { in: "require_lease", edits: [["lease", "false and not"]] },
    {
      in: "beat",
      edits: [["lease", "'0.2 millisecond'"]],
    },
  ],
};

export async function sabotage(sql: pg.Pool, name: string): Promise<void> {
  const watcher = { script: (text: string) => sql.query(text) };
  for (const mutation of sabotages[name] ?? []) await mutate(mutation)(watcher);
}
