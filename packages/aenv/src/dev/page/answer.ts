import { createHash } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { FIRST_INSTANCE, messageOf, type Task } from "@aenv/contract";
import type { Host } from "@aenv/kit";
import { renderPage } from "./render.ts";
import { SCRIPT } from "./script.ts";
import { STYLE } from "./style.ts";

/** Only the script and style of this page are allowed, nothing is loaded from other hosts, and no page may frame it. */
const POLICY = [
  "default-src 'none'",
  `script-src '${hashOf(SCRIPT)}'`,
  `style-src '${hashOf(STYLE)}'`,
  "connect-src 'self'",
  "img-src data:",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
].join("; ");

const HEADERS = {
  "content-type": "text/html; charset=utf-8",
  "content-security-policy": POLICY,
  "cache-control": "no-store",
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
};

/** The page of `aenv run`: the catalogue, the addresses, and a form for each tool. */
export async function answerPage(request: IncomingMessage, response: ServerResponse, host: Host): Promise<void> {
  const instance = host.get(FIRST_INSTANCE);
  const { name, version, catalogue } = host.environment;
  const html = renderPage({
    name,
    version,
    origin: `http://${request.headers.host ?? "127.0.0.1"}`,
    catalogue: {
      tools: [...instance.tools.values()].map(({ descriptor }) => descriptor),
      functions: catalogue.functions,
      rewards: catalogue.reward,
    },
    ...(await tasksOf(host)),
  });
  response.writeHead(200, { ...HEADERS, "content-length": Buffer.byteLength(html) });
  response.end(html);
}

/** If the tasks cannot be listed, the page shows the problem instead. */
async function tasksOf(host: Host): Promise<{ tasks: readonly Task[]; tasksProblem: string | null }> {
  try {
    const tasks = await host.tasks.of(host.get(FIRST_INSTANCE).episode.variables);
    return { tasks: [...tasks.values()], tasksProblem: null };
  } catch (error) {
    return { tasks: [], tasksProblem: messageOf(error) };
  }
}

function hashOf(text: string): string {
  return `sha256-${createHash("sha256").update(text).digest("base64")}`;
}
