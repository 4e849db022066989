// Something stands still in the middle of a claim: the worker while the answer is on its way to it, or
// the server's side of it inside the statement.
import type { Random } from "../random.js";
import type { Exchange, Fault, Member, Stage } from "../stage.js";
import { onServer } from "./administrator.js";
import { asksForTasks, tokenOf } from "./exchange.js";
import { within } from "./within.js";

const claimWithinMs = 5_000;
const claimed = "select count(*)::int as n from sluice.running where claim = $1";

export const freezeInClaim: Fault = {
  name: "freeze-in-claim",
  about: "SIGSTOP of a worker while its claim is in flight; the reply arrives half a lease to 2 leases later",
  disturbs: "worker",
  bite: (stage, random) =>
    stage.fleet.borrow(random, (member) =>
      stage.disturbing(member.name, "freeze-in-claim", () =>
        freezeAtClaim(stage, member, random.pick([0.5, 1.5, 2]) * stage.leaseMs),
      ),
    ),
};

async function freezeAtClaim(stage: Stage, member: Member, forMs: number): Promise<number> {
  let met: Exchange | undefined;
  const fits = (exchange: Exchange): boolean => asksForTasks((met = exchange));
  const letGo = await within(stage.signal, claimWithinMs, (signal) => member.proxy.holdReply(fits, signal));
  if (letGo === undefined || met === undefined) return 0;
  try {
    member.freeze();
    const bit = await hasClaimed(stage, tokenOf(met));
    await stage.pause(forMs);
    return bit;
  } finally {
    letGo();
    member.thaw();
  }
}

/** Whether tasks are out under this token. Nobody can have ended them: who claimed them stands still. */
async function hasClaimed(stage: Stage, token: string): Promise<number> {
  // The statement was sent just now; on a slow machine it takes a while.
  await stage.pause(stage.leaseMs / 8);
  const n = await onServer(stage, async (client) => {
    const { rows } = await client.query<{ n: number }>(claimed, [token]);
    return rows[0]!.n;
  });
  return (n ?? 0) > 0 ? 1 : 0;
}

const triesMax = 300;
const active = `select pid, query_start::text as since from pg_stat_activity
  where state = 'active' and query like '%.step(%' and pid <> pg_backend_pid() and ($1::int is null or pid = $1)
  order by random() limit 1`;

export const freezeBackend: Fault = {
  name: "freeze-backend",
  about: "SIGSTOP of the server process during a worker's step, for less or for more than a lease",
  disturbs: "server",
  bite: (stage, random) => stage.disturbing("*", "freeze-backend", async () => (await stopInside(stage, random)) ?? 0),
};

interface Active {
  readonly pid: number;
  readonly since: string;
}

/** Stops whoever is seen in a step, and looks whether he still is in it; if not, he goes on and another is tried. */
function stopInside(stage: Stage, random: Random): Promise<number | undefined> {
  return onServer(stage, async (client) => {
    const look = async (pid: number | null): Promise<Active | undefined> =>
      (await client.query<Active>(active, [pid])).rows[0];
    for (let tries = 0; tries < triesMax && !stage.signal.aborted; tries++) {
      const found = await look(null);
      if (found === undefined || !signal(found.pid, "SIGSTOP")) continue;
      // It may have a lock inside the server for which even our looking has to wait.
      const goOn = setTimeout(() => signal(found.pid, "SIGCONT"), 3 * stage.leaseMs);
      try {
        const still = await look(found.pid);
        if (still?.since !== found.since) continue;
        await stage.pause(random.pick([0.5, 2]) * stage.leaseMs);
        return (await look(found.pid))?.since === found.since ? 1 : 0;
      } finally {
        clearTimeout(goOn);
        signal(found.pid, "SIGCONT");
      }
    }
    return 0;
  });
}

/** False when there is no such process any more. */
function signal(pid: number, name: NodeJS.Signals): boolean {
  try {
    return process.kill(pid, name);
  } catch (e) {
    if ((e as NodeJS.ErrnoException).code === "ESRCH") return false;
    throw e;
  }
}
