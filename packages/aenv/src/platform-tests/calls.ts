import type { Platform } from "./platform.ts";

/** The result of a tool, or the refusal of the call. */
export interface Called {
  readonly status: number;
  /** The first text of the result. */
  readonly text: string | null;
  readonly isError: boolean;
  /** Code and message of a refusal. */
  readonly code: string | null;
  readonly message: string | null;
}

/** The URL of an instance on the data port. */
export function urlOf(platform: Pick<Platform, "dataUrl">, id: string, path = "/mcp"): string {
  return `${platform.dataUrl}/env-instance/${id}${path}`;
}

/** A tool call as a JSON-RPC request. */
export function toolCall(name: string, args: object = {}): RequestInit {
  return {
    method: "POST",
    headers: { "content-type": "application/json", accept: "application/json, text/event-stream" },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name, arguments: args } }),
  };
}

/** Calls a tool at a URL and reads the whole response, JSON or a stream. */
export async function callTool(url: string, name: string, args: object = {}, more: RequestInit = {}): Promise<Called> {
  const call = toolCall(name, args);
  const response = await fetch(url, { ...call, ...more, headers: { ...call.headers, ...more.headers } });
  const text = await response.text();
  const last = response.headers.get("content-type")?.startsWith("text/event-stream")
    ? text
        .split("\n")
        .findLast((line) => line.startsWith("data: {"))
        ?.slice(6)
    : text;
  const body = JSON.parse(last ?? "{}");
  return {
    status: response.status,
    text: body.result?.content?.[0]?.text ?? null,
    isError: body.result?.isError ?? false,
    code: body.errorInfo?.code ?? body.error?.data?.code ?? null,
    message: body.error?.message ?? body.error ?? null,
  };
}

/** Calls a function of the trainer API. */
export async function callFunction(platform: Pick<Platform, "dataUrl">, id: string, name: string, args: object = {}): Promise<unknown> {
  const response = await fetch(urlOf(platform, id, `/functions/${name}`), {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(args),
  });
  return ((await response.json()) as { data: unknown }).data;
}
