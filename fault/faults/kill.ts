// kill -9: the process is gone between two instructions, and nobody says goodbye for it.
import type { Fault, Stage } from "../stage.js";
import { onServer } from "./administrator.js";
import { untilBusy } from "./busy.js";

const leftBehind = `select count(*)::int as n from sluice.running r join sluice.worker w on w.id = r.worker
  where w.name = $1`;

export const kill: Fault = {
  name: "kill",
  about: "kill -9 of a random worker with running tasks",
  disturbs: "worker",
  bite: (stage, random) =>
    stage.fleet.borrow(random, async (member) => {
      if ((await untilBusy(stage, member)) === 0) return 0;
      await member.kill();
      return diedWithTasks(stage, member.name);
    }),
};

/** What it had in hand when it died is out under its name until its lease is over. */
async function diedWithTasks(stage: Stage, name: string): Promise<number> {
  const n = await onServer(stage, async (client) => {
    const { rows } = await client.query<{ n: number }>(leftBehind, [name]);
    return rows[0]!.n;
  });
  return (n ?? 0) > 0 ? 1 : 0;
}
