import { type CallToolResult, type ContentBlock, isObject, type Json, type JsonObject } from "@aenv/contract";
import type { CompiledTool, Toolset } from "../compile/environment.ts";
import type { AgentEvent, DataPart, Part, ReceivedMessage } from "../definition/agent.ts";
import type { CallHooks } from "./call.ts";

/** The tools of an episode. */
export interface ToolCaller {
  readonly tools: Toolset;
  callTool(tool: CompiledTool, input: unknown, hooks: CallHooks): CallToolResult | Promise<CallToolResult>;
}

/**
 * A message to an environment without an agent: a data part `{ "tool": …, "arguments": … }` calls a tool, whose result is an artifact.
 * Other messages are refused with the list of the tools.
 */
export async function* toolTurn(
  caller: ToolCaller,
  { parts }: ReceivedMessage,
  controller: AbortController,
): AsyncGenerator<AgentEvent, void, void> {
  const wanted = toolCallIn(parts);
  const tool = wanted === null ? undefined : caller.tools.get(wanted.name);
  if (wanted === null || tool === undefined) {
    yield { kind: "refusal", parts: [{ text: refusal(caller, wanted?.name) }] };
    return;
  }
  const progress = new Progress();
  const hooks = {
    controller,
    log: () => {},
    progress: (done: number, total?: number, message?: string) =>
      progress.add(message ?? `${done}${total === undefined ? "" : `/${total}`}`),
  };
  const running = caller.callTool(tool, wanted.input, hooks);
  yield* progress.until(running);
  const result = await running;
  if (result.isError === true) throw new Error(textIn(result) || `tool '${wanted.name}' failed`);
  const made = partsOf(result);
  if (made.length === 0) return;
  const metadata = isObject(result._meta) ? { metadata: result._meta as JsonObject } : {};
  yield { kind: "artifact", artifact: { name: wanted.name, parts: made, ...metadata }, last: true };
}

function toolCallIn(parts: readonly Part[]): { readonly name: string; readonly input: unknown } | null {
  const calls = parts.filter((part): part is DataPart => "data" in part && isObject(part.data) && typeof part.data.tool === "string");
  const [call] = calls;
  if (call === undefined || calls.length > 1) return null;
  const { tool, arguments: input } = call.data as { tool: string; arguments?: Json };
  return { name: tool, input };
}

function refusal({ tools }: ToolCaller, name: string | undefined): string {
  const why = name === undefined ? "this environment has no agent" : `there is no tool '${name}'`;
  return `${why}; send one data part {"tool": ..., "arguments": {...}} with one of the tools: ${[...tools.keys()].join(", ") || "none"}`;
}

/** Reports of progress of a call that runs, as events. */
class Progress {
  readonly #texts: string[] = [];
  #wake: (() => void) | undefined;

  add(text: string): void {
    this.#texts.push(text);
    this.#wake?.();
  }

  async *until(running: CallToolResult | Promise<CallToolResult>): AsyncGenerator<AgentEvent, void, void> {
    let isDone = !(running instanceof Promise);
    if (running instanceof Promise) {
      const finish = () => {
        isDone = true;
        this.#wake?.();
      };
      running.then(finish, finish);
    }
    for (;;) {
      const text = this.#texts.shift();
      if (text !== undefined) yield { kind: "message", parts: [{ text }] };
      else if (isDone) return;
      else await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }
}

/** Structured content as data; its text form, which repeats it, is left out. */
function partsOf({ content, structuredContent }: CallToolResult): Part[] {
  const structure = structuredContent === undefined ? null : JSON.stringify(structuredContent);
  const isRepeated = (block: ContentBlock) => structure !== null && block.type === "text" && isSameJson(String(block.text), structure);
  const rest = content.flatMap((block) => (isRepeated(block) ? [] : partOf(block)));
  return structure === null ? rest : [{ data: structuredContent as Json, mediaType: "application/json" }, ...rest];
}

/** A result whose schema is no object is wrapped in the structure, not in the text. */
function isSameJson(text: string, structure: string): boolean {
  return text === structure || structure === `{"result":${text}}` || structure === `{"result":${JSON.stringify(text)}}`;
}

function partOf(block: ContentBlock): Part[] {
  if (block.type === "text") return [{ text: String(block.text) }];
  if (block.type === "image" || block.type === "audio") return [{ raw: String(block.data), mediaType: String(block.mimeType) }];
  const { uri, mimeType } = (isObject(block.resource) ? block.resource : block) as { uri?: string; mimeType?: string };
  const type = mimeType === undefined ? {} : { mediaType: mimeType };
  if (isObject(block.resource) && typeof block.resource.text === "string") return [{ text: block.resource.text, ...type }];
  if (isObject(block.resource) && typeof block.resource.blob === "string") return [{ raw: block.resource.blob, ...type }];
  return uri === undefined ? [] : [{ url: uri, ...type }];
}

function textIn({ content }: CallToolResult): string {
  return content.map((block) => (block.type === "text" ? String(block.text) : "")).join("");
}
