import assert from "node:assert/strict";
import { Sluice, task, type, workflow, type Run } from "../src/index.js";

// An order: what it needs is reserved, a large one waits until somebody approves it, then it is paid and
// sent. Whatever goes wrong, the reservation is let go: that is the compensation.
const order = type<{ id: string; total: number }>();
const reserve = task("reserve-stock", {
  input: type<{ order: string }>(),
  output: type<{ reservation: string }>(),
});
const charge = task("charge-card", {
  input: type<{ order: string; approvedBy: string | null }>(),
  output: type<{ receipt: string }>(),
  retry: { attempts: 1 },
});
const release = task("release-stock", {
  input: type<{ reservation: string; why: string | null }>(),
});
const ship = task("ship-order", { input: type<{ order: string; receipt: string }>() });

const APPROVAL_MS = 2_000;
const fulfil = workflow("fulfil-order", { input: order }, (w, input) => {
  const reserved = w.task("reserve", reserve, { order: input.id });
  const large = w.when("large", input.total, { above: 1_000 }, (b) => {
    const approval = b.waitFor("approval", "approved", {
      timeoutMs: APPROVAL_MS,
      schema: type<{ by: string }>(),
      after: [reserved],
    });
    b.onFailure(approval, (f) => {
      f.task("give up", release, { reservation: reserved.reservation, why: "nobody approved" });
    });
    return approval;
  });
  const paid = w.task(
    "charge",
    charge,
    { order: input.id, approvedBy: large.yes.by },
    { after: [reserved, large] },
  );
  // The run does not fail for a card that was refused, if the stock could be released.
  w.onFailure(
    paid,
    (f, failure) => {
      f.task("release", release, { reservation: reserved.reservation, why: failure.message });
    },
    { recover: true },
  );
  w.task("ship", ship, { order: input.id, receipt: paid.receipt });
});

const stock = new Map<string, string>();
const approvedBy = new Map<string, string | null>();
const handlers = [
  reserve.handle(({ order: id }) => {
    stock.set(id, "reserved");
    return { reservation: id };
  }),
  charge.handle(({ order: id, approvedBy: by }) => {
    approvedBy.set(id, by);
    if (id === "no-money") throw new Error("the card was refused");
    return { receipt: `receipt of ${id}` };
  }),
  release.handle(({ reservation, why }) => void stock.set(reservation, `released: ${why}`)),
  ship.handle(({ order: id, receipt }) => void stock.set(id, `shipped with ${receipt}`)),
];

const sluice = await Sluice.connect({ embedded: !process.env["DATABASE_URL"] });
await sluice.worker({ handlers }).start();

const small = await sluice.start(fulfil, { id: "small", total: 20 });
const large = await sluice.start(fulfil, { id: "large", total: 5_000 });
// It may come before anybody waits for it: it is kept until then.
await large.send("approved", { by: "ada" });
const forgotten = await sluice.start(fulfil, { id: "forgotten", total: 5_000 });
const refused = await sluice.start(fulfil, { id: "no-money", total: 30 });

const endOf = async (run: Run): Promise<string> => {
  await run.result().catch(() => undefined);
  return (await run.status())!.state;
};
const ends = await Promise.all([small, large, forgotten, refused].map(endOf));
await sluice.close();

const ids = ["small", "large", "forgotten", "no-money"];
ids.forEach((id, i) => console.log(`${id}: ${ends[i]}, ${stock.get(id)}`));
console.log(`large was approved by ${approvedBy.get("large")}, small needed no approval`);
assert.deepEqual(ends, ["succeeded", "succeeded", "failed", "succeeded"]);
assert.equal(approvedBy.get("small"), null);
assert.ok(!approvedBy.has("forgotten"), "an order without an approval must not be charged");
