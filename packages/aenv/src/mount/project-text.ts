import type { McpCommandOptions, McpOffer, McpUrlOptions } from "@aenv/kit";

/** A mounted server, as the files of its project describe it. */
export interface MountedProject {
  readonly name: string;
  readonly version: string;
  readonly description: string;
  /** What was mounted: `npx -y PACKAGE`, or the URL. */
  readonly source: string;
  readonly options: Pick<McpCommandOptions, "command" | "env" | "image"> | Pick<McpUrlOptions, "url" | "headers" | "allowPrivate">;
  readonly offer: McpOffer;
  readonly data: readonly string[];
  readonly secrets: readonly string[];
  readonly form: string;
}

/** The files of the project that say what the environment is. */
export function mountedFiles(project: MountedProject): Map<string, string> {
  return new Map([
    ["config.json", toJson(configFor(project))],
    ["tools.json", toJson(project.offer.pinned)],
    ["src/index.ts", codeFor(project)],
    ["README.md", readmeFor(project)],
  ]);
}

function configFor({ name, version, description, options, data, secrets }: MountedProject): object {
  const egress = "url" in options ? egressFor(new URL(options.url)) : null;
  return {
    name,
    version,
    description,
    tags: ["mcp"],
    ...(data.length > 0 && { buildConfig: { data } }),
    deployConfig: {
      isolation: "shared",
      // The server of each episode is in a sandbox of its own, on engines that have them.
      ...("command" in options && { taskSandboxes: { images: options.image === undefined ? [] : [options.image] } }),
      ...(egress !== null && { egress: { allow: [egress] } }),
      ...(secrets.length > 0 && { secrets: Object.fromEntries(secrets.map((one) => [one, one])) }),
    },
  };
}

/** The entry of `deployConfig.egress` for a URL; null for an address of the machine itself, which no sandbox reaches. */
export function egressFor({ hostname, protocol, port }: URL): string | null {
  if (hostname === "localhost" || hostname.startsWith("127.") || hostname.startsWith("[")) return null;
  const isAddress = /^\d+\.\d+\.\d+\.\d+$/.test(hostname);
  return `${hostname}${isAddress ? "/32" : ""}:${port === "" ? (protocol === "https:" ? "443" : "80") : port}`;
}

function codeFor({ options, offer }: MountedProject): string {
  const [first = "a tool"] = offer.pinned.tools.map((tool) => tool.name);
  const lines = Object.entries(options)
    .filter(([, value]) => value !== undefined && !(typeof value === "object" && Object.keys(value).length === 0))
    .map(([key, value]) => `  ${key}: ${JSON.stringify(value)},`);
  return `import { mcpEnvironment } from "aenvironment";
import pinned from "../tools.json" with { type: "json" };

export default mcpEnvironment({
${lines.join("\n")}
  pinned,

  // What agents are asked to do. Each task is an episode with a server of its own.
  tasks: () => [{ id: "first", instruction: ${JSON.stringify(`Call the tool ${first}.`)} }],

  // The score of an episode, from 0 to 1; write your own. \`state.calls\` has what the agent has called, \`state.callTool\` asks the server, and
  // \`state.files\` reads its working folder.
  rewards: [
    {
      name: "called",
      description: ${JSON.stringify(`1 when the agent has called ${first} without an error.`)},
      score: ({ state }) => (state.calls.some(({ tool, isError }) => tool === ${JSON.stringify(first)} && !isError) ? 1 : 0),
    },
  ],
});
`;
}

function readmeFor({ name, source, offer, options, form, secrets }: MountedProject): string {
  const { tools, server, digest } = offer.pinned;
  const count = (list: readonly unknown[], what: string) => `${list.length} ${what}${list.length === 1 ? "" : "s"}`;
  const isProgram = "command" in options;
  return [
    `# ${name}`,
    "",
    `The MCP server \`${server?.name ?? name}\` ${server?.version ?? ""} as an environment, mounted from \`${source}\`: ${count(tools, "tool")}, ${count(offer.resources, "resource")}, ${count(offer.prompts, "prompt")}.`,
    "",
    "```sh",
    "npm install",
    "npx aenvironment test",
    "npx aenvironment run",
    "npx aenvironment push",
    "```",
    "",
    "| file | what |",
    "| --- | --- |",
    "| `src/index.ts` | tasks and rewards; start here |",
    `| \`tools.json\` | the tools that agents get, with the digest \`${digest.slice(0, 19)}…\` |`,
    ...(isProgram ? [`| \`vendor\` | the server, pinned: ${form} |`] : []),
    "",
    isProgram
      ? 'Each episode has a server of its own: in a sandbox where the engine isolates, in a folder of its own where it does not. When the server ends, the episode is lost and has no score; for a server without state, set `onExit: "restart"`.'
      : "The server is shared by all episodes. `deployConfig.egress` lets sandboxes connect to its host, and nowhere else.",
    "",
    "A server whose tools are not those of `tools.json` is named by the health report, and agents still get the pinned ones. `strict: true` refuses it.",
    ...(secrets.length > 0
      ? ["", `It needs the secrets ${secrets.map((one) => `\`${one}\``).join(", ")}, which the operator of a server stores.`]
      : []),
    "",
  ].join("\n");
}

export function toJson(value: object): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}
