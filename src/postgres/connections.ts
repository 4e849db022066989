import type { ServerConnections } from "../config/connections.js";
import type { Line } from "./line.js";
import { statement } from "./statement.js";

const connectionsStatement = statement<{
  server_max: number;
  reserved: number;
  in_use: number;
  workers: number;
  registered: number;
}>({
  name: "connections",
  text: "select server_max, reserved, in_use, workers, registered from sluice.connections()",
  params: [],
  columns: ["server_max", "reserved", "in_use", "workers", "registered"],
});

/** How many connections the server has, how many are open, and how many live workers may open. */
export async function serverConnections(line: Line): Promise<ServerConnections> {
  const [row] = await line.run(connectionsStatement, []);
  const { server_max: max, reserved, in_use: inUse, workers, registered } = row!;
  return { max, reserved, inUse, workers, registered };
}
