// A process that only serves metrics, with one open connection.
import { connect } from "node:net";
import { MetricsServer } from "../../../src/metrics/serve.js";

const server = await MetricsServer.open(
  { port: 0, host: "127.0.0.1", token: null },
  {
    metrics: async () => "",
    health: () => ({}),
    unready: () => [],
  },
);
const { port } = new URL(server.url!);
const socket = connect(Number(port), "127.0.0.1");
await new Promise((resolve) => {
  socket.once("data", resolve);
  socket.write("GET /live HTTP/1.1\r\nhost: localhost\r\n\r\n");
});
socket.unref();
console.log("answered");
