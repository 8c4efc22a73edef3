import type { Task, ToolDescriptor } from "@aenv/contract";
import type { Catalogue } from "../../project/catalogue.ts";
import { fieldsOf } from "./fields.ts";
import { Html, html } from "./html.ts";
import { SCRIPT } from "./script.ts";
import { STYLE } from "./style.ts";

export interface PageData {
  readonly name: string;
  readonly version: string;
  /** The origin in the browser: `http://127.0.0.1:8081`. */
  readonly origin: string;
  readonly catalogue: Catalogue;
  readonly tasks: readonly Task[];
  /** Why the tasks could not be listed, if they could not. */
  readonly tasksProblem: string | null;
}

const MAX_TASKS = 200;

/** The whole page. Everything that comes from the environment is escaped. */
export function renderPage(page: PageData): string {
  const { name, version, catalogue } = page;
  const { text } = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${name}@${version}</title>
<style>${new Html(STYLE)}</style>
</head>
<body>
<a class="skip" href="#tools">Skip to the tools</a>
<header>
<h1>${name}<span class="version">@${version}</span></h1>
<p>Served by <code>aenv run</code>. It is reloaded on every change; reload this page to see it.</p>
</header>
<main>
${addresses(page)}
<section id="tools" aria-labelledby="tools-title">
<h2 id="tools-title">Tools</h2>
${catalogue.tools.length === 0 ? html`<p class="empty">No tools yet. Add one with <code>registerTool</code> or under <code>tools</code> of <code>defineEnvironment</code>.</p>` : catalogue.tools.map(toolForm)}
</section>
${episode(page)}
${functions(page)}
</main>
<script>${new Html(SCRIPT)}</script>
</body>
</html>
`;
  return text;
}

function addresses({ name, origin }: PageData): Html {
  const client = JSON.stringify({ mcpServers: { [name]: { type: "http", url: `${origin}/mcp` } } }, null, 2);
  const rows = [
    ["MCP client", `${origin}/mcp`],
    ["Trainer", origin],
    ["SDK", `new Environment("${name}", { instanceUrl: "${origin}" })`],
    ["Shell", `aenv call --list --url ${origin}`],
  ] as const;
  return html`<section aria-labelledby="addresses-title">
<h2 id="addresses-title">Addresses</h2>
<dl>
${rows.map(([title, text]) => html`<div><dt>${title}</dt><dd><code>${text}</code>${copyButton(title)}</dd></div>`)}
</dl>
<details><summary>Configuration of an MCP client</summary><div class="block"><pre><code>${client}</code></pre>${copyButton("the configuration")}</div></details>
</section>`;
}

function copyButton(what: string): Html {
  return html`<button type="button" class="copy" data-copy aria-label="Copy: ${what}">Copy</button>`;
}

function toolForm(tool: ToolDescriptor, at = 0): Html {
  const id = `tool-${at}`;
  return html`<article class="card">
<h3 id="${id}">${tool.name}</h3>
${tool.description ? html`<p class="about">${tool.description}</p>` : html``}
<form data-tool="${tool.name}" aria-labelledby="${id}">
${fieldsOf(tool, id)}
<button type="submit">Call</button>
<output aria-live="polite" aria-label="Result of ${tool.name}"></output>
</form>
</article>`;
}

function episode({ tasks, tasksProblem, catalogue }: PageData): Html {
  const shown = tasks.slice(0, MAX_TASKS);
  return html`<section aria-labelledby="tasks-title">
<h2 id="tasks-title">Tasks${tasks.length === 0 ? "" : ` (${tasks.length})`}</h2>
${tasksProblem === null ? html`` : html`<p class="problem" role="alert">The tasks cannot be listed: ${tasksProblem}</p>`}
${
  shown.length === 0
    ? html`<p class="empty">This environment has no tasks.</p>`
    : html`<div class="scroll"><table><thead><tr><th scope="col">Task</th><th scope="col">Instruction</th><th scope="col"><span class="unseen">Start</span></th></tr></thead><tbody>
${shown.map(taskRow)}
</tbody></table></div>`
}
${tasks.length > shown.length ? html`<p class="empty">${tasks.length - shown.length} more: <code>aenv call --tasks</code></p>` : html``}
<div class="actions">
<button type="button" data-reset>Start a new episode</button>
${catalogue.rewards.length === 0 ? html`` : html`<button type="button" data-reward>Get the reward</button>`}
</div>
<output id="episode" aria-live="polite" aria-label="The episode"></output>
</section>`;
}

function taskRow({ id, instruction = "" }: Task): Html {
  return html`<tr><th scope="row"><code>${id}</code></th><td>${instruction}</td><td><button type="button" data-reset="${id}" aria-label="Start ${id}">Start</button></td></tr>
`;
}

function functions({ catalogue }: PageData): Html {
  const rows = [
    ...catalogue.functions.map((entry) => ({ kind: "function", entry })),
    ...catalogue.rewards.map((entry) => ({ kind: "reward", entry })),
  ];
  if (rows.length === 0) return html``;
  return html`<section aria-labelledby="functions-title">
<h2 id="functions-title">Functions and rewards</h2>
<div class="scroll"><table><thead><tr><th scope="col">Kind</th><th scope="col">Name</th><th scope="col">What it does</th></tr></thead><tbody>
${rows.map(
  ({ kind, entry }) => html`<tr><td>${kind}</td><th scope="row"><code>${entry.name}</code></th><td>${entry.description ?? ""}</td></tr>
`,
)}
</tbody></table></div>
</section>`;
}
