// No connection is left for those who have to come back.
import type pg from "pg";
import type { Fault, Stage } from "../stage.js";
import { administrator, administratorName, unlessAway } from "./administrator.js";

const connectionsMax = 500;
const atOnce = 8;
const tooMany = "53300";

export const connections: Fault = {
  name: "connections",
  about: "all connections are cut and max_connections is used up for 1 to 2 s",
  disturbs: "server",
  bite: (stage, random) =>
    stage.disturbing("*", "connections", async () => {
      const taken: pg.Client[] = [];
      try {
        return (await unlessAway(() => exhaust(stage, taken, random.between(1_000, 2_000)))) ?? 0;
      } finally {
        await Promise.all(taken.map((client) => client.end().catch(() => {})));
      }
    }),
};

async function exhaust(stage: Stage, taken: pg.Client[], forMs: number): Promise<number> {
  const first = await administrator(stage);
  taken.push(first);
  await fill(stage, taken);
  await first.query(
    `select pg_terminate_backend(pid) from pg_stat_activity
     where backend_type = 'client backend' and application_name <> $1`,
    [administratorName],
  );
  await fill(stage, taken);
  // From here on we try no more: whoever is refused now is one of the others.
  const before = await stage.server.errors(tooMany);
  await stage.pause(forMs);
  return (await stage.server.errors(tooMany)) > before ? 1 : 0;
}

/** Takes connections until the server refuses one. */
async function fill(stage: Stage, taken: pg.Client[]): Promise<void> {
  let refused = false;
  const take = async (): Promise<void> => {
    while (!refused && taken.length < connectionsMax) {
      const client = await administrator(stage).catch(() => undefined);
      if (client === undefined) refused = true;
      else taken.push(client);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, take));
}
