// A setting of the server that is changed for a moment, for everybody.
import type { Fault, Stage } from "../stage.js";
import { insistOnServer, onServer } from "./administrator.js";

/** Sets it for all, waits, resets it. Resolves with how often the server has answered with `sqlstate` meanwhile. */
function during(
  stage: Stage,
  setting: { readonly name: string; readonly value: string; readonly forMs: number },
  sqlstate: string,
): Promise<number> {
  const { name, value, forMs } = setting;
  return stage.disturbing("*", name, async () => {
    const before = await stage.server.errors(sqlstate);
    try {
      await onServer(stage, async (client) => {
        await client.query(`alter system set ${name} = ${value}`);
        await client.query("select pg_reload_conf()");
      });
      await stage.pause(forMs);
    } finally {
      await insistOnServer(stage, async (client) => {
        await client.query(`alter system reset ${name}`);
        await client.query("select pg_reload_conf()");
      });
    }
    return (await stage.server.errors(sqlstate)) > before ? 1 : 0;
  });
}

export const readOnly: Fault = {
  name: "read-only",
  about: "default_transaction_read_only for 1 to 2 s, as on a server during a failover",
  disturbs: "server",
  bite: (stage, random) =>
    during(stage, { name: "default_transaction_read_only", value: "on", forMs: random.between(1_000, 2_000) }, "25006"),
};

export const statementTimeout: Fault = {
  name: "statement-timeout",
  about: "statements are cancelled after 1 to 10 ms, for a second",
  disturbs: "server",
  bite: (stage, random) =>
    during(stage, { name: "statement_timeout", value: `${random.between(1, 10)}`, forMs: 1_000 }, "57014"),
};
