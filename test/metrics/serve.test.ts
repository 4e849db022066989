import { once } from "node:events";
import { get } from "node:http";
import { connect, createServer, type AddressInfo } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { task, type } from "../../src/index.js";
import { checkMetrics, type MetricsOptions } from "../../src/metrics/options.js";
import { MetricsServer, type Pages } from "../../src/metrics/serve.js";
import { codeOf } from "../client/house.js";
import { scene, signal, until } from "../flow/scene.js";

const TOKEN = "a-token-of-24-characters";

async function serve(options: MetricsOptions, pages: Partial<Pages> = {}, patienceMs?: number): Promise<string> {
  const all = {
    metrics: async () => "sluice_x 1\n",
    health: () => ({ state: "running" }),
    unready: () => [],
    ...pages,
  };
  const address = checkMetrics({ port: 0, ...options }).serve!;
  const server = await MetricsServer.open(address, all, patienceMs);
  onTestFinished(() => server.close());
  return server.url!;
}

const bearer = (token: string): RequestInit => ({ headers: { authorization: `Bearer ${token}` } });

test("the metrics server serves only /metrics, /health, /live and /ready", async () => {
  const url = await serve({});
  const metrics = await fetch(`${url}/metrics?x=1`);
  expect(metrics.headers.get("content-type")).toBe("text/plain; version=0.0.4; charset=utf-8");
  expect(await metrics.text()).toBe("sluice_x 1\n");
  expect(await (await fetch(`${url}/health`)).json()).toEqual({ state: "running" });
  expect(await (await fetch(`${url}/live`)).json()).toEqual({ live: true });
  expect(await (await fetch(`${url}/ready`)).json()).toEqual({ ready: true, reasons: [] });
  expect((await fetch(`${url}/`)).status).toBe(404);
});

test("the metrics server answers HEAD with headers only and refuses other methods", async () => {
  const url = await serve({});
  const head = await fetch(`${url}/metrics`, { method: "HEAD" });
  expect([head.status, head.headers.get("content-length"), await head.text()]).toEqual([200, "11", ""]);
  for (const method of ["POST", "PUT", "DELETE", "OPTIONS"]) {
    const refused = await fetch(`${url}/metrics`, { method });
    expect([refused.status, refused.headers.get("allow")]).toEqual([405, "GET, HEAD"]);
  }
});

test("the metrics server answers 503 with reasons if unready, and 500 on an error", async () => {
  const url = await serve(
    {},
    {
      unready: () => ["the worker has no lease"],
      metrics: () => Promise.reject(new Error("no numbers")),
    },
  );
  const ready = await fetch(`${url}/ready`);
  expect(ready.status).toBe(503);
  expect(await ready.json()).toEqual({ ready: false, reasons: ["the worker has no lease"] });
  const metrics = await fetch(`${url}/metrics`);
  expect([metrics.status, await metrics.json()]).toEqual([500, { error: "no numbers" }]);
});

test("the metrics server requires a token beyond loopback", async () => {
  for (const host of ["0.0.0.0", "::", "10.0.0.1", "example.org", "128.0.0.1"])
    expect(await codeOf(() => checkMetrics({ port: 0, host })), host).toBe("invalid_option");
  expect(checkMetrics({ port: 0, host: "0.0.0.0", token: TOKEN }).serve?.token).toBe(TOKEN);
  for (const host of ["127.0.0.1", "127.1.2.3", "::1", "localhost"])
    expect(checkMetrics({ port: 0, host }).serve?.host).toBe(host);
  // Nothing listens, so no token is required.
  expect(checkMetrics({ host: "0.0.0.0" }).serve).toBeNull();
});

test("the metrics server checks its token on every page except the probes", async () => {
  const url = await serve({ token: TOKEN }, { unready: () => ["starting"] });
  expect(await (await fetch(`${url}/live`)).json()).toEqual({ live: true });
  const ready = await fetch(`${url}/ready?x=1`);
  expect([ready.status, await ready.json()]).toEqual([503, { ready: false, reasons: ["starting"] }]);
  expect((await fetch(`${url}/live`, { method: "POST" })).status).toBe(405);
  expect((await fetch(`${url}/live`, bearer("wrong"))).status).toBe(200);
  for (const page of ["metrics", "health", "live/", "ready/x", "?/live", "other", ""]) {
    const refused = await fetch(`${url}/${page}`);
    expect([refused.status, refused.headers.get("www-authenticate")]).toEqual([401, "Bearer"]);
    expect((await fetch(`${url}/${page}`, bearer(`${TOKEN}x`))).status).toBe(401);
    expect((await fetch(`${url}/${page}`, bearer(TOKEN.slice(1)))).status).toBe(401);
  }
  expect((await fetch(`${url}/metrics`, bearer(TOKEN))).status).toBe(200);
});

/** The status of a request with this Host header, which a browser sets to the name in its address bar. */
function statusFor(url: string, host: string, token = ""): Promise<number | undefined> {
  const headers = { host, authorization: `Bearer ${token}` };
  return new Promise((resolve, reject) => {
    get(`${url}/metrics`, { headers, agent: false }, (response) => {
      response.resume();
      resolve(response.statusCode);
    }).on("error", reject);
  });
}

test("the metrics server without a token answers only requests to a loopback host", async () => {
  const url = await serve({});
  const { port } = new URL(url);
  for (const host of ["localhost", "LocalHost:9464", `127.0.0.1:${port}`, "127.1.2.3", "[::1]:80"])
    expect(await statusFor(url, host), host).toBe(200);
  const strange = ["example.org", `rebound.example:${port}`, "localhost.example.org", "10.0.0.1"];
  for (const host of [...strange, "127.0.0.1.example.org", "x127.0.0.1", "[::2]"])
    expect(await statusFor(url, host), host).toBe(403);
  // A request with the token may use any host.
  expect(await statusFor(await serve({ token: TOKEN }), "example.org", TOKEN)).toBe(200);
});

test("idle connections do not block requests to the metrics server", async () => {
  const url = await serve({}, {}, 500);
  const port = Number(new URL(url).port);
  // As many connections as the server accepts: half send nothing, half send part of a request.
  const closed = Array.from({ length: 64 }, async (_, i) => {
    const socket = connect(port, "127.0.0.1").resume();
    onTestFinished(() => void socket.destroy());
    // A connection that is closed while it writes gets an error.
    socket.on("error", () => {});
    if (i % 2 === 0) socket.write("GET /ready HTTP/1.1\r\nhost: localhost\r\n");
    await once(socket, "close");
  });
  // Node.js checks for them every 30 s by default, which this test does not wait for.
  await Promise.all(closed);
  expect((await fetch(`${url}/ready`)).status).toBe(200);
}, 8_000);

test.each([
  { port: 65_536 },
  { port: "9464" },
  { host: "" },
  { host: "a b" },
  { token: "short" },
  { token: `${"x".repeat(20)}\n` },
  { enabled: "yes" },
  { registry: {} },
  { ports: 1 },
])("metrics options %j are refused", async (options) => {
  expect(await codeOf(() => checkMetrics(options as MetricsOptions))).toBe("invalid_option");
});

test("a worker whose metrics port is taken fails with a typed error and does not register", async () => {
  const s = await scene();
  const other = createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => other.once("listening", resolve));
  onTestFinished(() => void other.close());
  const { port } = other.address() as AddressInfo;
  const handlers = [task("job", { input: type<number>() }).handle(() => {})];
  const worker = s.sluice.worker({ handlers, metrics: { port } });
  await expect(worker.start()).rejects.toMatchObject({
    code: "port_unavailable",
    details: { host: "127.0.0.1", port, reason: "EADDRINUSE" },
  });
  expect((await s.sql.query("select from sluice.worker")).rowCount).toBe(0);
  // The worker cannot start again and says why.
  await expect(worker.start()).rejects.toMatchObject({
    code: "stopped",
    message: expect.stringMatching(/^this worker failed to start; create a new one: .*EADDRINUSE/),
    cause: { code: "port_unavailable" },
  });
});

test("a worker is ready while it claims, unready while it stops, and does not listen once stopped", async () => {
  const s = await scene();
  const [begun, finish] = [signal(), signal()];
  const job = task("job", { input: type<number>() });
  const handler = job.handle(async () => {
    begun.resolve();
    await finish.promise;
  });
  const worker = await s.worker({ handlers: [handler], metrics: { port: 0 } });
  const url = worker.metricsUrl!;
  expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
  expect((await fetch(`${url}/ready`)).status).toBe(200);
  await s.sluice.enqueue(job, 1);
  await begun.promise;
  expect(await (await fetch(`${url}/health`)).json()).toMatchObject({
    state: "running",
    ready: true,
    inFlight: 1,
    pressure: { state: "normal" },
  });
  const stopped = worker.stop();
  const ready = await until("stopping", async () => {
    const response = await fetch(`${url}/ready`);
    return response.status === 503 && response;
  });
  expect(await ready.json()).toEqual({ ready: false, reasons: ["stopping"] });
  expect((await fetch(`${url}/live`)).status).toBe(200);
  finish.resolve();
  await stopped;
  await expect(fetch(`${url}/live`)).rejects.toThrow();
  expect(worker.metricsUrl).toBeNull();
});

test("a worker with an old heartbeat or without a lease is not ready", async () => {
  const s = await scene();
  const handlers = [task("job", { input: type<number>() }).handle(() => {})];
  const worker = await s.worker({ handlers, leaseMs: 1_000, metrics: { port: 0 } });
  const locker = await s.sql.connect();
  // Heartbeats wait for this lock, and registrations do once the lease has expired.
  await locker.query("begin; lock table sluice.worker in access exclusive mode");
  const reasons = await until("not ready", async () => {
    const response = await fetch(`${worker.metricsUrl}/ready`);
    return response.status === 503 && ((await response.json()) as { reasons: string[] }).reasons;
  });
  expect(reasons.join()).toMatch(/^(the last heartbeat is \d+ ms old|the worker has no lease)$/);
  await locker.query("rollback");
  locker.release();
  await until("ready again", async () => (await fetch(`${worker.metricsUrl}/ready`)).status === 200);
});
