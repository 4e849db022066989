// The server goes away, or throws everybody out.
import type { Fault } from "../stage.js";
import { administratorName, onServer } from "./administrator.js";

const terminate = `select count(*) filter (where pg_terminate_backend(pid))::int as n from pg_stat_activity
  where backend_type = 'client backend' and pid <> pg_backend_pid() and application_name <> $1`;

export const terminateBackends: Fault = {
  name: "terminate-backends",
  about: "pg_terminate_backend of all connections at once",
  disturbs: "server",
  bite: (stage) =>
    stage.disturbing("*", "terminate-backends", async () => {
      const before = await stage.server.errors("57P01");
      const told = await onServer(stage, async (client) => {
        const { rows } = await client.query<{ n: number }>(terminate, [administratorName]);
        return rows[0]!.n;
      });
      // A backend says so itself when it goes.
      await stage.pause(100);
      return (told ?? 0) > 0 && (await stage.server.errors("57P01")) > before ? 1 : 0;
    }),
};

export const restart: Fault = {
  name: "restart",
  about: "the server is stopped as with pg_ctl -m immediate and started again",
  disturbs: "server",
  bite: (stage) =>
    stage.disturbing("*", "restart", async () => {
      const before = await onServer(stage, startOf);
      await stage.server.restartImmediately();
      const after = await onServer(stage, startOf);
      return before !== undefined && after !== undefined && after !== before ? 1 : 0;
    }),
};

async function startOf(client: { query(text: string): Promise<{ rows: unknown[] }> }): Promise<string> {
  const { rows } = await client.query("select pg_postmaster_start_time()::text as at");
  return (rows[0] as { at: string }).at;
}
