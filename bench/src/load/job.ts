/** Where requests go. */
export interface Address {
  readonly url: string;
  /** Prefix of every path: one server may have many instances with the same routes. */
  readonly prefix?: string;
}

/**
 * What a load process sends: each turn goes through the steps one after another, and each of the `lanes` takes one turn
 * after another over a connection of its own. `{n}` in a step stands for the turn's number.
 */
export interface LoadJob extends Address {
  readonly lanes: number;
  /** A turn begins at each such interval while a lane is free; without it, each lane begins the next turn at once. */
  readonly everyMs?: number;
  /** Whether each lane opens an MCP session first, for servers that require one. */
  readonly hasSession?: boolean;
  readonly steps: readonly Step[];
}

export interface Step {
  readonly method: "GET" | "POST" | "DELETE";
  readonly path: string;
  readonly body?: string;
  /** Every answer must be a 200 that contains this text, or the run fails. */
  readonly expect: string;
}

/** The limit that is reached first ends a run. */
export interface Limits {
  readonly turns: number;
  readonly ms: number;
}

export interface LoadResult {
  readonly turns: number;
  readonly elapsedMs: number;
  /** A latency per turn. */
  readonly latenciesMs: readonly number[];
}

/** A `tools/call` as an MCP client sends it. */
export function toolCall(name: string, args: object, expect: string, path = "/mcp"): Step {
  return rpc("tools/call", { name, arguments: args }, expect, path);
}

export function rpc(method: string, params: object, expect: string, path = "/mcp"): Step {
  // A value that is only a placeholder becomes a number, not a string.
  const body = JSON.stringify({ jsonrpc: "2.0", id: "{n}", method, params }).replaceAll('"{n}"', "{n}");
  return { method: "POST", path, body, expect };
}
