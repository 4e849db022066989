import { createServer, type AddressInfo, type Server } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { endPool, openPool } from "../../src/postgres/part.js";

function message(type: string, body: string | Buffer): Buffer {
  const content = Buffer.from(body);
  const head = Buffer.alloc(5);
  head.write(type);
  head.writeInt32BE(content.length + 4, 1);
  return Buffer.concat([head, content]);
}

/** Accepts every connection and closes it in the same packet, as pg_terminate_backend may. */
async function unfriendly(): Promise<Server> {
  const words = "SFATAL\0C57P01\0Mterminating connection due to administrator command\0\0";
  const server = createServer((socket) => {
    socket.on("error", () => {});
    socket.once("data", () =>
      socket.end(Buffer.concat([message("R", Buffer.alloc(4)), message("Z", "I"), message("E", Buffer.from(words))])),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  return server;
}

test("a connection that is closed as soon as it is open does not end the process", async () => {
  const { port } = (await unfriendly()).address() as AddressInfo;
  const pool = openPool({ connectionString: `postgresql://u@127.0.0.1:${port}/d`, max: 1 });
  const unheard: unknown[] = [];
  const hear = (e: unknown): void => void unheard.push(e);
  process.on("uncaughtException", hear);
  onTestFinished(() => void process.off("uncaughtException", hear));
  const client = await pool.connect();
  const ended = new Promise<void>((resolve) => client.once("end", resolve));
  await ended;
  client.release(true);
  await endPool(pool);
  expect(unheard).toEqual([]);
});
