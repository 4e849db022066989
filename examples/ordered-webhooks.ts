import assert from "node:assert/strict";
import { EventEmitter, once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { json } from "node:stream/consumers";
import { Sluice, exponential, task, type } from "../src/index.js";

// Webhooks of one endpoint are delivered one at a time and in order; endpoints do not wait for each
// other. An endpoint that is down is tried again and holds back its own line only.
const deliver = task("deliver-webhook", {
  input: type<{ endpoint: string; event: number }>(),
  order: { key: (hook) => hook.endpoint, scope: "webhooks" },
  retry: { attempts: 50, backoff: exponential({ minMs: 20, maxMs: 200 }) },
  timeoutMs: 10_000,
});

const events = [1, 2, 3, 4, 5];
const received: Record<string, number[]> = { "/a": [], "/b": [], "/c": [] };
let refused = 0;
let calling = 0;
let most = 0;
const news = new EventEmitter();
const allCall = once(news, "all call");
const firstRefusal = once(news, "refused");

// Their side: /b is down from its second event on, until the others have had all of theirs.
async function receive(endpoint: string, event: number): Promise<number> {
  const others = received["/a"]!.length + received["/c"]!.length;
  if (endpoint === "/b" && event === 2 && others < 2 * events.length) {
    refused++;
    news.emit("refused");
    return 503;
  }
  // The first events are answered when all endpoints have been called.
  if (event === 1) await allCall;
  // What the others do from here on, they do while /b is down.
  if (endpoint !== "/b" && event === 3) await firstRefusal;
  received[endpoint]!.push(event);
  return 204;
}
const receiver = createServer((request, response) => {
  most = Math.max(most, ++calling);
  if (calling === 3) news.emit("all call");
  response.once("close", () => calling--);
  json(request)
    .then((hook) => receive(request.url!, (hook as { event: number }).event))
    .then(
      (status) => response.writeHead(status).end(),
      () => response.writeHead(500).end(),
    );
});
await once(receiver.listen(0, "127.0.0.1"), "listening");
const { port } = receiver.address() as AddressInfo;

const sluice = await Sluice.connect({ embedded: !process.env["DATABASE_URL"] });
const hooks = events.flatMap((event) =>
  Object.keys(received).map((endpoint) => ({ endpoint, event })),
);
const many = await sluice.enqueueMany(deliver, hooks);

const worker = sluice.worker({
  handlers: [
    deliver.handle(async ({ endpoint, event }, ctx) => {
      const response = await fetch(`http://127.0.0.1:${port}${endpoint}`, {
        method: "POST",
        // A webhook may arrive twice; by this header the receiver can tell.
        headers: { "idempotency-key": ctx.idempotencyKey },
        body: JSON.stringify({ event }),
        signal: ctx.signal,
      });
      if (!response.ok) throw new Error(`${endpoint} answered ${response.status}`);
    }),
  ],
});
await worker.start();
await Promise.all(many.ids().map((id) => sluice.task(id).result({ timeoutMs: 20_000 })));
await sluice.close();
receiver.close();
receiver.closeAllConnections();

for (const [endpoint, got] of Object.entries(received))
  console.log(`${endpoint}: ${got.join(" ")}`);
console.log(refused > 0 ? "/b was down and delayed only its own webhooks" : "/b was never down");
console.log(`${most} endpoints at once`);

for (const got of Object.values(received)) assert.deepEqual(got, events);
assert.ok(refused > 0);
assert.equal(most, 3);
