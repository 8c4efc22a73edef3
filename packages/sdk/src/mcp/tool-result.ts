import {
  type CallToolResult,
  type ContentBlock,
  type EpisodeStatus,
  episodeStatus,
  isObject,
  parseBoundedJson,
  STATUS_META,
} from "@aenv/contract";
import { ValidationError } from "../errors/errors.ts";

/**
 * The result of a tool call. A failed tool gives a result too: check `isError`.
 *
 * @example
 * const result = await env.callTool("get_weather", { city: "Beijing" });
 * if (!result.isError) console.log(result.json<Weather>().temperature);
 */
export class ToolResult {
  /** The blocks as in MCP: `{type:"text",text}`, `{type:"image",data,mimeType}` and so on. */
  readonly content: readonly ContentBlock[];
  readonly isError: boolean;
  /** Undefined if the tool returned none. */
  readonly structuredContent: unknown;
  /** Whether the episode is over after this call; undefined where the environment does not say. */
  readonly status: EpisodeStatus | undefined;

  constructor(answer: CallToolResult) {
    this.content = answer.content;
    this.isError = answer.isError ?? false;
    this.structuredContent = answer.structuredContent;
    this.status = statusIn(answer._meta);
  }

  /** All text blocks, joined by line breaks. */
  get text(): string {
    const texts: string[] = [];
    for (const block of this.content) {
      if (block.type === "text" && typeof block.text === "string") texts.push(block.text);
    }
    return texts.join("\n");
  }

  /** The structured content if there is one, else the text parsed as JSON. */
  json<T = unknown>(): T {
    if (this.structuredContent !== undefined) return this.structuredContent as T;
    try {
      return parseBoundedJson(this.text) as T;
    } catch (cause) {
      throw new ValidationError(`the tool's result is not JSON: ${preview(this.text)}`, { cause });
    }
  }
}

function statusIn(meta: unknown): EpisodeStatus | undefined {
  if (!isObject(meta) || meta[STATUS_META] === undefined) return undefined;
  const parsed = episodeStatus.safeParse(meta[STATUS_META]);
  return parsed.success ? parsed.data : undefined;
}

function preview(text: string): string {
  if (text === "") return "it has no text";
  return text.length > 80 ? `${text.slice(0, 77)}...` : text;
}
