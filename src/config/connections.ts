/** The settings that decide how many connections a process with one worker opens. */
interface ConnectionNumbers {
  readonly claimLoops: number;
  /** All connections: the worker's and those for enqueue and queries. */
  readonly dbConnections: number;
  /** For enqueue, queries and the listener: the API buffer. */
  readonly apiConnections: number;
  /** For transactions of handlers. Default: what the others leave. */
  readonly handlerConnections?: number | undefined;
}

/** How the connections are shared, and whether they are enough. */
export interface ConnectionShares {
  /** To claim and settle. */
  readonly claims: number;
  /** To send heartbeats, which renew the lease. */
  readonly beat: number;
  /** For work that must happen without a request: due, reap, prune. */
  readonly keep: number;
  /** For transactions of handlers. */
  readonly handlers: number;
  /** For enqueue, queries and the listener. */
  readonly api: number;
  /** Connections available: dbConnections. */
  readonly total: number;
  /** The sum of the shares. */
  readonly needed: number;
  readonly ok: boolean;
  /** What is wrong, with every summand; null if nothing is. */
  readonly problem: string | null;
}

// While the server answers one statement, Node prepares the next: with a single connection it would wait.
const CLAIMS_MIN = 2;
const BEAT = 1;
const KEEP = 1;
// Without one, `ctx.transaction` would wait forever.
const HANDLERS_MIN = 1;

/**
 * Maximum number of connections that a client opens. If it listens, one of them is the listener, and it needs another
 * for the rest.
 */
export function apiShare(o: { readonly apiConnections: number; readonly listen: boolean }): number {
  return o.listen ? Math.max(2, o.apiConnections) : o.apiConnections;
}

/**
 * The connections of a process with one worker:
 * dbConnections >= connections for claims + beat + keep + handlers' transactions + API buffer.
 */
export function connectionsOf(n: ConnectionNumbers): ConnectionShares {
  const claims = Math.max(CLAIMS_MIN, n.claimLoops);
  const rest = n.dbConnections - claims - BEAT - KEEP - n.apiConnections;
  const handlers = n.handlerConnections ?? Math.max(HANDLERS_MIN, rest);
  const needed = claims + BEAT + KEEP + handlers + n.apiConnections;
  const ok = needed <= n.dbConnections;
  const shares = { claims, beat: BEAT, keep: KEEP, handlers, api: n.apiConnections };
  return {
    ...shares,
    total: n.dbConnections,
    needed,
    ok,
    problem: ok ? null : problemOf(shares, n.dbConnections, needed),
  };
}

type Shares = Pick<ConnectionShares, "claims" | "beat" | "keep" | "handlers" | "api">;

function problemOf(s: Shares, total: number, needed: number): string {
  return (
    `dbConnections (MAX_DB_CONNECTIONS) is ${total}, but ${needed} are needed: ${sumOf(s)}. ` +
    "Raise dbConnections, or lower claimLoops, handlerConnections or apiConnections"
  );
}

/** The sum in words: "2 to claim and settle + 1 for heartbeats + ...". */
export function sumOf(s: Shares): string {
  return [
    `${s.claims} to claim and settle`,
    `${s.beat} for heartbeats`,
    `${s.keep} for the keeper`,
    `${s.handlers} for handler transactions`,
    `${s.api} for enqueue and queries (API buffer)`,
  ].join(" + ");
}

/** The connections of a server, as it reports them. */
export interface ServerConnections {
  /** max_connections. */
  readonly max: number;
  /** Connections reserved for superusers and the like. */
  readonly reserved: number;
  readonly inUse: number;
  /** Number of live workers; `registered` is the most connections they may open together. */
  readonly workers: number;
  readonly registered: number;
}

/** Whether the connections that a worker may open fit beside the existing ones. */
interface Fit {
  /** The worker could not open all of them even if it were alone. */
  readonly impossible: string | null;
  /** The worker could not open all of them right now. */
  readonly tight: string | null;
}

const REMEDY = "Lower dbConnections (MAX_DB_CONNECTIONS), run fewer processes, raise max_connections, or use a pooler";

/** `may` is the most connections that the worker may open, `open` how many of those it already has. */
export function fitOf({ may, open }: { readonly may: number; readonly open: number }, s: ServerConnections): Fit {
  const room = s.max - s.reserved;
  const has = `but the server allows ${room} (max_connections ${s.max} - ${s.reserved} reserved). ${REMEDY}`;
  if (may > room) return { impossible: `this worker may open ${may} connections, ${has}`, tight: null };
  // The connections that others have open and those that other workers may still open overlap by an unknown amount. The
  // larger of the two numbers is a lower bound.
  const others = Math.max(0, s.inUse - open);
  const wanted = may + Math.max(others, s.registered);
  if (wanted <= room) return { impossible: null, tight: null };
  const beside =
    s.registered > others
      ? `${s.workers} other ${s.workers === 1 ? "worker" : "workers"} may open ${s.registered}`
      : `other clients have ${others} open now`;
  const sum = `${may} + ${wanted - may} = ${wanted}`;
  const tight = `this worker may open ${may} connections and ${beside}: ${sum}, ${has}`;
  return { impossible: null, tight };
}
