import type { FlowNode, Line } from "./line.js";

type FlowLine = Extract<Line, { readonly flow: string }>;

/** A run of a workflow, as its producer claims it, and what was done to it. */
export interface Flow {
  readonly name: string;
  /** The tag of the task whose handler made it. */
  parent: string | null;
  nodes: readonly FlowNode[];
  acknowledged: boolean;
  withdrawn: boolean;
  readonly cancelling: number[];
  readonly retrying: number[];
  readonly atRest: Extract<FlowLine, { readonly kind: "flowAtRest" }>["state"][];
}

export function noteFlow(flows: Map<string, Flow>, line: FlowLine): void {
  let flow = flows.get(line.flow);
  if (flow === undefined) flows.set(line.flow, (flow = begun(line.flow)));
  if (line.kind === "flowOffered") [flow.parent, flow.nodes] = [line.parent, line.nodes];
  else if (line.kind === "flowAcknowledged") flow.acknowledged = true;
  else if (line.kind === "flowWithdrawn") flow.withdrawn = true;
  else if (line.kind === "flowCancelling") flow.cancelling.push(line.at);
  else if (line.kind === "flowRetrying") flow.retrying.push(line.at);
  else if (line.kind === "flowNotRetried") flow.retrying.pop();
  else if (line.kind === "flowAtRest") flow.atRest.push(line.state);
}

function begun(name: string): Flow {
  return {
    name,
    parent: null,
    nodes: [],
    acknowledged: false,
    withdrawn: false,
    cancelling: [],
    retrying: [],
    atRest: [],
  };
}
