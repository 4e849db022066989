// Takes a guard out of the engine, to see that the audit notices. For tests only.
import type pg from "pg";
import { mutate, type Mutation } from "../test/postgres/mutation.js";

const fence: readonly Mutation[] = [
  {
    in: "settle_succeeded",
    edits: [
      [" and r.claim = u.claim", ""],
      [" and r.claim = v.claim", ""],
      [" and r.claim = p_claims[i]", ""],
    ],
  },
  { in: "settle_others", edits: [[" and r.claim = u.claim", ""]] },
  // A zombie that completes in a transaction is also held up by its lease, and by having to settle something.
  {
    in: "settle_in_transaction",
    edits: [
      ["perform sluice.require_lease(p_worker);\n  select", "select"],
      ["if v.settled is null then perform sluice.refuse", "if false then perform sluice.refuse"],
    ],
  },
];

export const sabotages: Readonly<Record<string, readonly Mutation[]>> = {
  fence,
  "lane-lock": [{ in: "admit", edits: [["order by id for update", "order by id"]] }],
  "order-head": [
    {
      in: "admit_order",
      edits: [["order by place, id limit", "order by place desc, id desc limit"]],
    },
  ],
  "gate-cap": [
    {
      in: "lock_gates",
      edits: [["greatest(0, l.room + coalesce(c.n, 0) + u.own - l.kept)", "u.want"]],
    },
    { in: "step", edits: [["greatest(0, least(p_n, g.room + v_own))", "p_n"]] },
  ],
  // More items of a fan-out run at once than its window lets through.
  window: [
    { in: "lane_cap", edits: [["0 else n.window_size end", "0 else 2 * n.window_size end"]] },
  ],
  // Tasks that wait for a total are passed over, 10 of every 12 seconds: all of them run in the end.
  "pass-over": [
    {
      in: "sources",
      edits: [
        [
          "    where v.room > 0\n    limit 16",
          "    where v.room > 0 and (h.gate = 0 or extract(epoch from clock_timestamp())::int % 12 < 2)\n    limit 16",
        ],
      ],
    },
  ],
  // After the clock was set back a dead worker's lease lasts until the clock has caught up.
  "set-back": [
    {
      in: "reap",
      edits: [["where expires_at > v_now + (lease", "where false and expires_at > v_now + (lease"]],
    },
  ],
  // Two who complete the last items of a fan-out at once do not know of each other.
  "run-lock": [
    { in: "workflow_ended", edits: [["order by r.id for no key update", "order by r.id"]] },
  ],
  // The database gives tasks away long before their worker believes that its lease is over.
  lease: [
    { in: "require_lease", edits: [["if not exists", "if false and not exists"]] },
    {
      in: "beat",
      edits: [["lease_ms * interval '1 millisecond'", "lease_ms * interval '0.2 millisecond'"]],
    },
  ],
};

export async function sabotage(sql: pg.Pool, name: string): Promise<void> {
  const watcher = { script: (text: string) => sql.query(text) };
  for (const mutation of sabotages[name] ?? []) await mutate(mutation)(watcher);
}
