// Audits a long log in a process of its own, whose memory is bounded from outside.
import { audit } from "../../../fault/audit/audit.js";
import type { Line } from "../../../fault/audit/line.js";
import { change, disturbance, Tale, terms } from "./story.js";

/** Five lines for each task, in 50 order keys, four processes and a limit that changes all the time. */
function* linesOf(count: number): Generator<Line> {
  for (let n = 0; n < count / 5; n++) {
    const order = { orderKey: `k${n % 50}`, place: Math.floor(n / 50) };
    const claims = [{ limits: ["pool"] }, order, {}][n % 3]!;
    yield* new Tale(`p/${n}`, claims).whole(n * 10, n * 10 + 9, { process: `w${n % 4}` });
    if (n % 500 === 0) yield* disturbance(n * 10, n * 10 + 50, n % 1000 === 0 ? "*" : "w1");
    if (n % 500 === 1) yield* change(n * 10, n * 10 + 1, "pool", 1 + (n % 3));
  }
}

const lines = [...linesOf(Number(process.argv[2]))];
const well = audit(lines, terms);
const wrong = audit(
  lines.filter(({ kind }) => kind !== "accepted"),
  terms,
);
process.stdout.write(JSON.stringify({ well, wrong }));
