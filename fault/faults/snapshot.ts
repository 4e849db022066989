// A report that runs for long: no row that dies meanwhile can be cleaned away.
import type { Fault } from "../stage.js";
import { onServer } from "./administrator.js";

// How many transactions have begun since our snapshot.
const age = "select age(backend_xmin)::int as n from pg_stat_activity where pid = pg_backend_pid()";
const ageMin = 100;

export const longSnapshot: Fault = {
  name: "long-snapshot",
  about: "a REPEATABLE READ transaction holds its snapshot for 3 to 6 s under load",
  disturbs: "work",
  holdsLocks: true,
  bite: async (stage, random) => {
    const bit = await onServer(stage, async (client) => {
      await client.query("begin isolation level repeatable read");
      await client.query("select count(*) from sluice.ready");
      await stage.pause(random.between(3_000, 6_000));
      const { rows } = await client.query<{ n: number }>(age);
      await client.query("rollback");
      return rows[0]!.n >= ageMin ? 1 : 0;
    });
    return bit ?? 0;
  },
};
