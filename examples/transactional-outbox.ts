import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { json } from "node:stream/consumers";
import pg from "pg";
import { startEmbedded } from "../src/embedded/index.js";
import { Sluice, task, type, type TaskHandle } from "../src/index.js";

// An order and its mail are written in one transaction: there is never an order without a mail, nor
// a mail without an order, whatever fails in between. No outbox table and no relay are needed.
interface Order {
  email: string;
  pieces: number;
}
const sendMail = task("send-order-mail", { input: type<{ order: number; email: string }>() });

const server = process.env["DATABASE_URL"] ? null : await startEmbedded();
const pool = new pg.Pool({ connectionString: server?.url ?? process.env["DATABASE_URL"] });
// What breaks while nobody uses it is replaced; without a listener it would end the process.
pool.on("error", () => {});
const sluice = await Sluice.connect({ pool });
await pool.query(`
  drop table if exists example_order, example_stock;
  create table example_order (id int generated always as identity primary key, email text not null);
  create table example_stock (pieces int not null check (pieces >= 0));
  insert into example_stock values (5)`);

const enqueued: TaskHandle[] = [];

async function placeOrder({ email, pieces }: Order): Promise<number> {
  const tx = await pool.connect();
  try {
    await tx.query("begin");
    const inserted = "insert into example_order (email) values ($1) returning id";
    const { id } = (await tx.query<{ id: number }>(inserted, [email])).rows[0]!;
    enqueued.push(await sluice.enqueue(sendMail, { order: id, email }, { tx }));
    // Fails when too few are left: by then both the order and the mail have been written.
    await tx.query("update example_stock set pieces = pieces - $1", [pieces]);
    await tx.query("commit");
    return id;
  } catch (e) {
    await tx.query("rollback");
    throw e;
  } finally {
    tx.release();
  }
}

const http = createServer((request, response) => {
  const answer = (status: number, body: object): void =>
    void response
      .writeHead(status, { "content-type": "application/json" })
      .end(JSON.stringify(body));
  json(request)
    .then((order) => placeOrder(order as Order))
    .then(
      (id) => answer(201, { id }),
      (e: { code?: string }) =>
        // 23514: a check constraint, here the one on the stock.
        e.code === "23514" ? answer(409, { error: "sold out" }) : answer(500, { error: "failed" }),
    );
});
await once(http.listen(0, "127.0.0.1"), "listening");
const { port } = http.address() as AddressInfo;

const sent: string[] = [];
const worker = sluice.worker({
  handlers: [sendMail.handle(({ email }) => void sent.push(email))],
});
await worker.start();

for (const order of [
  { email: "ada@example.com", pieces: 2 },
  { email: "bob@example.com", pieces: 4 },
  { email: "eve@example.com", pieces: 3 },
]) {
  const body = JSON.stringify(order);
  const { status } = await fetch(`http://127.0.0.1:${port}/orders`, { method: "POST", body });
  console.log(`${order.email} orders ${order.pieces}: ${status}`);
}
http.close();

const mails = await Promise.all(enqueued.map((mail) => mail.status()));
for (const mail of mails) if (mail !== null) await sluice.task(mail.id).result();
const { rows } = await pool.query<Order>("select email from example_order order by id");
const orders = rows.map((row) => row.email);
await sluice.close();
await pool.end();
await server?.stop();

console.log(`orders: ${orders.join(", ")}`);
console.log(`mails:  ${sent.toSorted().join(", ")}`);
assert.deepEqual(orders, ["ada@example.com", "eve@example.com"]);
assert.deepEqual(sent.toSorted(), orders);
assert.equal(mails[1], null, "the mail of the failed request must not exist");
