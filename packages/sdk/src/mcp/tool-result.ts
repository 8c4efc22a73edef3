import type { CallToolResult, ContentBlock } from "@aenv/contract";
import { ValidationError } from "../errors/errors.ts";

/**
 * What a tool answered. A tool that failed by itself is an answer too: look at `isError`.
 *
 * @example
 * const result = await env.callTool("get_weather", { city: "Beijing" });
 * if (!result.isError) console.log(result.json<Weather>().temperature);
 */
export class ToolResult {
  /** The blocks as MCP has them: `{type:"text",text}`, `{type:"image",data,mimeType}` and so on. */
  readonly content: readonly ContentBlock[];
  readonly isError: boolean;
  /** Undefined when the tool gave none. */
  readonly structuredContent: unknown;

  constructor(answer: CallToolResult) {
    this.content = answer.content;
    this.isError = answer.isError ?? false;
    this.structuredContent = answer.structuredContent;
  }

  /** All text blocks, one after the other, with a line break between. */
  get text(): string {
    const texts: string[] = [];
    for (const block of this.content) {
      if (block.type === "text" && typeof block.text === "string") texts.push(block.text);
    }
    return texts.join("\n");
  }

  /** The structured content if there is one, else the text read as JSON. */
  json<T = unknown>(): T {
    if (this.structuredContent !== undefined) return this.structuredContent as T;
    try {
      return JSON.parse(this.text) as T;
    } catch (cause) {
      throw new ValidationError(`the tool's answer is not JSON: ${preview(this.text)}`, { cause });
    }
  }
}

function preview(text: string): string {
  if (text === "") return "it holds no text";
  return text.length > 80 ? `${text.slice(0, 77)}...` : text;
}
