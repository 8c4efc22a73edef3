import type { RemoteAgentOptions, RemoteCard } from "@aenv/kit";
import { egressFor, toJson } from "./project-text.ts";

/** A mounted agent, as the files of its project describe it. */
export interface MountedAgent {
  readonly name: string;
  readonly version: string;
  readonly url: string;
  readonly card: RemoteCard;
  readonly digest: string;
  readonly connection: RemoteAgentOptions;
  readonly secrets: readonly string[];
}

/** The files of the project that say what the environment is. */
export function agentFiles(agent: MountedAgent): Map<string, string> {
  const { interface: used, ...card } = agent.card;
  return new Map([
    ["config.json", toJson(configFor(agent))],
    ["card.json", toJson({ digest: agent.digest, url: agent.url, protocol: used.version, binding: used.binding, card })],
    ["src/index.ts", codeFor(agent)],
    ["README.md", readmeFor(agent)],
  ]);
}

function configFor({ name, version, url, card, secrets }: MountedAgent): object {
  // The agent may be at another host than its card.
  const allow = [...new Set([new URL(url), card.interface.url].flatMap((one) => egressFor(one) ?? []))];
  return {
    name,
    version,
    description: card.description === "" ? `The agent ${card.name}.` : card.description,
    tags: ["agent", "a2a"],
    deployConfig: {
      isolation: "shared",
      ...(allow.length > 0 && { egress: { allow } }),
      ...(secrets.length > 0 && { secrets: Object.fromEntries(secrets.map((one) => [one, one])) }),
    },
  };
}

function codeFor({ url, card, connection }: MountedAgent): string {
  const options = Object.keys(connection).length === 0 ? "" : `, ${JSON.stringify(connection)}`;
  const skills = card.skills.map(({ id, name, description, tags }) => ({ id, name, description, tags }));
  return `import { agentEnvironment, remoteAgent } from "aenvironment";

export default agentEnvironment({
  description: ${JSON.stringify(card.description === "" ? card.name : card.description)},
  skills: ${JSON.stringify(skills)},
  agent: remoteAgent(${JSON.stringify(url)}${options}),

  // What the agent is asked to do.
  tasks: () => [{ id: "first", instruction: "Say hello." }],

  // The score of an episode, from 0 to 1; write your own.
  rewards: [{ name: "finished", description: "1 for every episode.", score: () => 1 }],
});
`;
}

function readmeFor({ name, url, card, digest }: MountedAgent): string {
  const { version, binding } = card.interface;
  return [
    `# ${name}`,
    "",
    `The agent \`${card.name}\` at \`${url}\` as an environment. It speaks A2A ${version} over ${binding}.`,
    "",
    "```sh",
    "npm install",
    "npx aenvironment run",
    'npx aenvironment call chat message="Hello"',
    "npx aenvironment push",
    "```",
    "",
    "| file | what |",
    "| --- | --- |",
    "| `src/index.ts` | tasks and rewards; start here |",
    `| \`card.json\` | the agent's card when it was mounted, with the digest \`${digest.slice(0, 19)}…\` |`,
    "",
    "The agent's memory is elsewhere: an episode with a conversation is neither stored nor forked. When the agent cannot be reached, the episode is unscored.",
    "",
  ].join("\n");
}
