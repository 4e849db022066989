import { createHash, timingSafeEqual } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerOptions, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { SluiceError } from "../core/error.js";
import { CONTENT_TYPE } from "./text.js";

/** The pages that the server provides. */
export interface Pages {
  /** Empty if metrics are disabled. */
  metrics(): Promise<string>;
  health(): object;
  /** The reasons why the worker is not ready; empty if it is. */
  unready(): readonly string[];
}

interface Address {
  readonly port: number;
  readonly host: string;
  readonly token: string | null;
}

interface Page {
  readonly status: number;
  readonly type: string;
  readonly body: string;
}

const HEADER_BYTES_MAX = 8 * 1024;
const PATIENCE_MS = 5_000;
const KEEP_ALIVE_MS = 5_000;
const CONNECTIONS_MAX = 64;
const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d{1,5})?$/i;
const CLOSE_MS_MAX = 500;
// They tell nothing but whether the worker works.
const PROBES: ReadonlySet<string> = new Set(["/live", "/ready"]);

/** A small HTTP server for one worker. It does not keep the process alive. */
export class MetricsServer {
  readonly #server: Server;
  readonly #url: string;

  private constructor(server: Server, url: string) {
    this.#server = server;
    this.#url = url;
  }

  /** Null once the server is closed: the port may then belong to another process. */
  get url(): string | null {
    return this.#server.listening ? this.#url : null;
  }

  /**
   * Throws `port_unavailable` if the port is taken or cannot be opened. A request must arrive completely within
   * `patienceMs`.
   */
  static async open(address: Address, pages: Pages, patienceMs = PATIENCE_MS): Promise<MetricsServer> {
    const refused = refuses(address.token);
    const server = createServer(limits(patienceMs), (req, res) => {
      void answer(req, res, refused, pages);
    });
    server.maxConnections = CONNECTIONS_MAX;
    server.on("connection", (socket) => socket.unref());
    await listening(server, address);
    server.unref();
    const { port, family, address: host } = server.address() as AddressInfo;
    return new MetricsServer(server, `http://${family === "IPv6" ? `[${host}]` : host}:${port}`);
  }

  async close(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    this.#server.closeIdleConnections();
    // Let in-flight responses finish; drop slow clients after 500 ms.
    const late = setTimeout(() => this.#server.closeAllConnections(), CLOSE_MS_MAX);
    await closed;
    clearTimeout(late);
  }
}

function limits(patienceMs: number): ServerOptions {
  return {
    maxHeaderSize: HEADER_BYTES_MAX,
    headersTimeout: patienceMs,
    requestTimeout: patienceMs,
    // guard: half a request holds its connection no longer -> test/metrics/serve.test.ts: "idle connections do not block requests to the metrics server"
    connectionsCheckingInterval: /* guard:slow-request */ patienceMs / 5 /* end */,
    keepAliveTimeout: KEEP_ALIVE_MS,
  };
}

function listening(server: Server, { port, host }: Address): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", (e: NodeJS.ErrnoException) =>
      reject(
        new SluiceError(
          "port_unavailable",
          `the worker cannot serve its metrics on ${host} port ${port}: ${e.message}`,
          { cause: e, details: { host, port, reason: e.code } },
        ),
      ),
    );
    server.listen({ port, host }, () => {
      server.removeAllListeners("error");
      // Ignore errors of single connections; without a listener they would end the process.
      server.on("error", () => {});
      resolve();
    });
  });
}

async function answer(
  req: IncomingMessage,
  res: ServerResponse,
  refused: (req: IncomingMessage) => 401 | 403 | null,
  pages: Pages,
): Promise<void> {
  req.resume();
  let page: Page;
  const refusal = refused(req);
  if (refusal === 401) {
    res.setHeader("www-authenticate", "Bearer");
    page = json(401, { error: "a token is required: send authorization: Bearer <token>" });
  } else if (refusal === 403) {
    page = json(403, { error: "without a token only requests to localhost are allowed" });
  } else if (req.method !== "GET" && req.method !== "HEAD") {
    res.setHeader("allow", "GET, HEAD");
    page = json(405, { error: "only GET and HEAD are allowed" });
  } else page = await pageOf(req.url ?? "", pages).catch(broken);
  const { status, type, body } = page;
  const headers = { "content-type": type, "content-length": Buffer.byteLength(body) };
  res.writeHead(status, { ...headers, "cache-control": "no-store" });
  res.end(req.method === "HEAD" ? undefined : body);
}

async function pageOf(url: string, pages: Pages): Promise<Page> {
  const path = pathOf(url);
  if (path === "/metrics") return metricsPage(await pages.metrics());
  if (path === "/health") return json(200, pages.health());
  if (path === "/live") return json(200, { live: true });
  if (path === "/ready") {
    const reasons = pages.unready();
    return json(reasons.length === 0 ? 200 : 503, { ready: reasons.length === 0, reasons });
  }
  return json(404, { error: "not found: the paths are /metrics, /health, /live and /ready" });
}

function pathOf(url: string): string {
  return url.split("?", 1)[0]!;
}

/** An empty page would look like a healthy worker without numbers. */
function metricsPage(body: string): Page {
  if (body === "") return json(404, { error: "no metrics are collected: metrics.enabled is false" });
  return { status: 200, type: CONTENT_TYPE, body };
}

function broken(e: unknown): Page {
  return json(500, { error: e instanceof Error ? e.message : "unknown" });
}

function json(status: number, value: object): Page {
  return { status, type: "application/json; charset=utf-8", body: `${JSON.stringify(value)}\n` };
}

/**
 * With a token, refuses requests that do not carry it, except probes: a kubelet cannot read a secret. Digests have a fixed length, so the comparison takes constant
 * time, whatever was sent.
 *
 * Without a token, refuses requests for a host other than loopback. A web page in a browser on this machine can make
 * its own name resolve to 127.0.0.1 and then read the responses; but its requests carry that name.
 */
function refuses(token: string | null): (req: IncomingMessage) => 401 | 403 | null {
  // guard: without a token only loopback is answered -> test/metrics/serve.test.ts: "the metrics server without a token answers only requests to a loopback host"
  if (token === null) {
    return ({ headers: { host = "" } }) => {
      const isLocal = /* guard:loopback */ LOOPBACK.test(host); /* end */
      return isLocal ? null : 403;
    };
  }
  const wanted = digest(`Bearer ${token}`);
  return ({ url = "", headers: { authorization = "" } }) => {
    // guard: only probes need no token -> test/metrics/serve.test.ts: "the metrics server checks its token on every page except the probes"
    if (/* guard:probes */ PROBES.has(pathOf(url)) /* end */) return null;
    const sent = digest(authorization.replace(/^bearer /i, "Bearer "));
    return timingSafeEqual(sent, wanted) ? null : 401;
  };
}

function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
