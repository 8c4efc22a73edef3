import { createHash } from "node:crypto";
import { canonicalJson, isObject, PlatformError, problemsOf, type ToolDescriptor, toolDescriptor } from "@aenv/contract";
import type { McpPeer, RequestOptions } from "./peer.ts";

/** A list of tools that an environment is bound to: the content of `tools.json`. */
export interface PinnedTools {
  /** `sha256:…` of the tools, by which a changed list is noticed. */
  readonly digest: string;
  /** Who said so when the list was made. */
  readonly server?: { readonly name: string; readonly version: string };
  readonly tools: readonly ToolDescriptor[];
}

/** How the list of a running server differs from the pinned one. */
export interface ToolChanges {
  readonly digest: string;
  readonly added: readonly string[];
  readonly removed: readonly string[];
  readonly changed: readonly string[];
}

const MAX_TOOLS = 2_000;

/** All tools of a server, in its order. */
export async function listTools(peer: McpPeer, options: RequestOptions): Promise<ToolDescriptor[]> {
  const tools: ToolDescriptor[] = [];
  let cursor: string | undefined;
  do {
    const page = await peer.request("tools/list", cursor === undefined ? {} : { cursor }, options);
    if (!Array.isArray(page.tools)) throw invalid("the answer to tools/list has no list of tools");
    for (const one of page.tools) tools.push(plainTool(one));
    if (tools.length > MAX_TOOLS) throw invalid(`it has more than ${MAX_TOOLS} tools`);
    const { nextCursor } = page;
    // A server that answers with the same page again would never end.
    if (nextCursor === cursor) break;
    cursor = typeof nextCursor === "string" && nextCursor !== "" ? nextCursor : undefined;
  } while (cursor !== undefined);
  return tools;
}

/** What an agent sees of a tool. The rest, such as icons and fields of the protocol, is left out. */
function plainTool(value: unknown): ToolDescriptor {
  const parsed = toolDescriptor.safeParse(value);
  if (!parsed.success) throw invalid(`a tool is not as MCP describes it: ${problemsOf(parsed.error, "it")}`);
  const { name, title, description, inputSchema, outputSchema, annotations } = parsed.data;
  return {
    name,
    ...(title !== undefined && { title }),
    ...(description !== undefined && { description }),
    inputSchema,
    ...(outputSchema !== undefined && { outputSchema }),
    ...(isObject(annotations) && { annotations }),
  };
}

export function pinTools(tools: readonly ToolDescriptor[]): PinnedTools {
  return { digest: digestOf(tools), tools };
}

/** The order does not count. */
function digestOf(tools: readonly ToolDescriptor[]): string {
  const texts = tools.map((tool) => canonicalJson(tool)).sort();
  return `sha256:${createHash("sha256").update(JSON.stringify(texts)).digest("hex")}`;
}

/** Null if the list is the pinned one. */
export function changesOf(pinned: PinnedTools, tools: readonly ToolDescriptor[]): ToolChanges | null {
  const digest = digestOf(tools);
  if (digest === pinned.digest) return null;
  const now = new Map(tools.map((tool) => [tool.name, canonicalJson(tool)]));
  const before = new Map(pinned.tools.map((tool) => [tool.name, canonicalJson(tool)]));
  return {
    digest,
    added: [...now.keys()].filter((name) => !before.has(name)),
    removed: [...before.keys()].filter((name) => !now.has(name)),
    changed: [...now].filter(([name, text]) => before.has(name) && before.get(name) !== text).map(([name]) => name),
  };
}

export function describeChanges({ added, removed, changed }: ToolChanges): string {
  const parts = [
    ["new", added],
    ["gone", removed],
    ["changed", changed],
  ] as const;
  const named = parts.filter(([, names]) => names.length > 0).map(([what, names]) => `${what}: ${names.slice(0, 10).join(", ")}`);
  return named.join("; ") || "the pinned list was edited";
}

function invalid(why: string): PlatformError {
  return new PlatformError("sandbox.start_failed", `the MCP server cannot be used: ${why}`, { retryable: false });
}
