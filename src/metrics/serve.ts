import { createHash, timingSafeEqual } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { SluiceError } from "../core/error.js";
import { CONTENT_TYPE } from "./text.js";

/** What the server can be asked. */
export interface Pages {
  metrics(): Promise<string>;
  health(): object;
  /** Why it is not ready; nothing if it is. */
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

const LIMITS = { maxHeaderSize: 8 * 1024, headersTimeout: 5_000, requestTimeout: 5_000 };
const KEEP_ALIVE_MS = 5_000;
const CONNECTIONS_MAX = 64;
const CLOSE_MS_MAX = 500;

/** A small HTTP server of one worker. It keeps no process alive. */
export class MetricsServer {
  readonly url: string;
  readonly #server: Server;

  private constructor(server: Server, url: string) {
    this.#server = server;
    this.url = url;
  }

  /** Throws `port_unavailable` if the port is taken, or cannot be had. */
  static async open(address: Address, pages: Pages): Promise<MetricsServer> {
    const allowed = allows(address.token);
    const server = createServer({ ...LIMITS, keepAliveTimeout: KEEP_ALIVE_MS }, (req, res) => {
      void answer(req, res, allowed, pages);
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
    // Whoever is being answered gets his answer, unless he takes his time.
    const late = setTimeout(() => this.#server.closeAllConnections(), CLOSE_MS_MAX);
    await closed;
    clearTimeout(late);
  }
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
      // An error of one connection is nobody's business; unheard, it would end the process.
      server.on("error", () => {});
      resolve();
    });
  });
}

async function answer(
  req: IncomingMessage,
  res: ServerResponse,
  allowed: (header: string | undefined) => boolean,
  pages: Pages,
): Promise<void> {
  req.resume();
  let page: Page;
  if (!allowed(req.headers.authorization)) {
    res.setHeader("www-authenticate", "Bearer");
    page = json(401, { error: "a token is needed" });
  } else if (req.method !== "GET" && req.method !== "HEAD") {
    res.setHeader("allow", "GET, HEAD");
    page = json(405, { error: "only GET and HEAD" });
  } else page = await pageOf(req.url ?? "", pages).catch(broken);
  const { status, type, body } = page;
  const headers = { "content-type": type, "content-length": Buffer.byteLength(body) };
  res.writeHead(status, { ...headers, "cache-control": "no-store" });
  res.end(req.method === "HEAD" ? undefined : body);
}

async function pageOf(url: string, pages: Pages): Promise<Page> {
  const [path] = url.split("?", 1);
  if (path === "/metrics") return { status: 200, type: CONTENT_TYPE, body: await pages.metrics() };
  if (path === "/health") return json(200, pages.health());
  if (path === "/live") return json(200, { live: true });
  if (path === "/ready") {
    const reasons = pages.unready();
    return json(reasons.length === 0 ? 200 : 503, { ready: reasons.length === 0, reasons });
  }
  return json(404, { error: "there are /metrics, /health, /live and /ready" });
}

function broken(e: unknown): Page {
  return json(500, { error: e instanceof Error ? e.message : "unknown" });
}

function json(status: number, value: object): Page {
  return { status, type: "application/json; charset=utf-8", body: `${JSON.stringify(value)}\n` };
}

/** Digests have one length, and so the comparison takes one time, whatever was sent. */
function allows(token: string | null): (header: string | undefined) => boolean {
  if (token === null) return () => true;
  const wanted = digest(`Bearer ${token}`);
  return (header = "") => timingSafeEqual(digest(header.replace(/^bearer /i, "Bearer ")), wanted);
}

function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
